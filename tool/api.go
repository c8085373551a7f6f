package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Caller identifies the caller of an operation. A person at a shell is the lead with Person set;
// an agent is the member that its environment names.
type Caller struct {
	Name    string // agent name; team.LeadName for a person
	Session string
	Role    team.Role
	Person  bool
	Mode    team.Mode // permission mode that narrows the role; empty: no restriction
	// Conversation is the key of the built-in agent's session from which the call comes; empty:
	// none, or the member's own session.
	Conversation string
	// Door is the screen by which a person acts, DoorPage or DoorScreen; empty: a command.
	Door string
}

// Doors of a person that the log names.
const (
	DoorPage   = "page"
	DoorScreen = "screen"
)

// Person returns the caller for a person at a shell.
func Person() Caller { return Caller{Name: team.LeadName, Role: team.RoleLeader, Person: true} }

// Lead returns the caller for a program that leads the team, such as a model with an MCP client:
// it has the lead's role, permission mode and place on the roster. Requests that wait for a person
// are not for it.
func Lead(m ledger.Member) Caller {
	return Caller{Name: m.Name, Session: m.SessionKey, Role: team.RoleLeader, Mode: m.Spec.Mode}
}

// Supervisor is the part of a team's supervisor that the operations use; the control client
// implements it over the socket.
type Supervisor interface {
	Spawn(ctx context.Context, in team.SpawnRequest) (ledger.SpawnResult, error)
	StopMembers(ctx context.Context, in team.StopRequest) ([]team.Stopped, error)
	StartMembers(ctx context.Context, names []string) ([]ledger.Member, error)
	RestartMembers(ctx context.Context, names []string) ([]ledger.Member, error)
	// RenameMember renames the member with a session key; the member must have no process.
	RenameMember(ctx context.Context, session, name string) (ledger.Member, error)
	Capture(ctx context.Context, name string, scrollback int) (string, error)
	// View calls each with the lines of a member's screen, with colours only, now and after every
	// change, from one goroutine, until ctx ends, which is no error, or the member or the supervisor
	// does.
	View(ctx context.Context, name string, each func(lines []string)) error
	// ViewBack returns the lines of a member's screen once, with what its terminal keeps above them.
	ViewBack(ctx context.Context, name string) ([]string, error)
	TypeText(ctx context.Context, name, text string, enter bool) error
	Hide(ctx context.Context, name string, hidden bool) error
	PauseMembers(ctx context.Context, names []string, on bool) ([]ledger.Member, error)
	RecoverMembers(ctx context.Context, names []string) ([]team.Recovered, error)
	Status(ctx context.Context) (ledger.SupervisorStatus, error)
	// CarryOut carries out the action of an approval, unless that was done before.
	CarryOut(ctx context.Context, approval int64) (ledger.Outcome, error)
	Debug(ctx context.Context) (team.Debug, error)
	// Explain reports what a member is doing, with the sources.
	Explain(ctx context.Context, name string) (team.Report, error)
	// InterruptMember interrupts the current turn of a member.
	InterruptMember(ctx context.Context, name string) error
	Goroutines(ctx context.Context) (string, error)
	// Quit ends the supervisor. With closeTeam no member may be running, and the backends remove
	// the team's resources (the private tmux server).
	Quit(ctx context.Context, closeTeam bool) error
}

// Settler mails a delivery that is only posted and returns its new state. After an error the
// caller has to mail it.
type Settler interface {
	Settle(ctx context.Context, d ledger.Delivery) (ledger.Delivery, error)
}

// Env is the environment of the operations. cmd fills the zero value of each field except Home;
// tests set their own.
type Env struct {
	Home team.Home
	// Dial returns the team's supervisor. With start it starts one if none is running; otherwise it
	// returns nil and no error then.
	Dial func(ctx context.Context, l team.Layout, start bool) (Supervisor, error)
	// Ping returns once the team's running supervisor has answered, or with an error when it cannot
	// be asked any more; nil: programs that show the team do not ask whether it answers.
	Ping func(ctx context.Context, l team.Layout) error
	// Writer returns the ledger writer of this process for an open ledger, and the way to the
	// supervisor for messages, which may be nil.
	Writer func(l team.Layout, direct ledger.Writer) (ledger.Writer, Settler)
	// Watch reports changes of files; nil: each opened team has a hub of its own.
	Watch team.Watcher
	// Ledgers has the ledgers that this process has open; nil: each opened team opens its own.
	Ledgers *ledger.Shared
	// CheckModel reports why a model (provider/model; "" is the default) cannot be used, or else a
	// remark for a person; nil: models are not checked.
	CheckModel func(ctx context.Context, ref string) (note string, err error)
	// Price reports whether the price of a model (provider/model; "" is the default) is known, and
	// returns the model's name; nil: budgets in dollars are not checked.
	Price func(ctx context.Context, ref string) (name string, known bool, err error)
	// CheckConfine reports why commands cannot be confined on this machine; nil: they can.
	CheckConfine func() error
	// Models lists the available models of one provider, or of all configured ones; nil: unknown.
	Models func(ctx context.Context, provider string, refresh bool) ([]ProviderModels, error)
	// OwnSpecs returns the agent specs in the user's home directory, and the errors of unusable
	// ones; nil: none.
	OwnSpecs func() (specs []team.AgentSpec, troubles []error)
	// CheckAgent refuses an unknown kind of agent; nil: kinds are not checked.
	CheckAgent func(kind string) error
	// BrokenSkills returns the errors of unusable skills, of the home directory and of repositories;
	// nil: none.
	BrokenSkills func(repos []string) []error
	// Dir is the directory that selects a team if several exist and none is named; "" selects none.
	Dir string

	step func(name string) // called by tests
}

// TeamCreateIn creates a team. Repo empty: no repository, no worktrees.
type TeamCreateIn struct {
	TeamName    string `json:"team_name"`
	Description string `json:"description,omitempty"`
	AgentType   string `json:"agent_type,omitempty"`
	Repo        string `json:"repo,omitempty"`
	Base        string `json:"base,omitempty"`
	WorktreeDir string `json:"worktree_root,omitempty"`
	Unique      bool   `json:"unique,omitempty"` // pick a free name instead of failing

	Repos map[string]string `json:"repos,omitempty"` // further repositories: path by name
}

// TeamCreateOut is the created team.
type TeamCreateOut struct {
	TeamName     string `json:"team_name"`
	TeamFilePath string `json:"team_file_path"`
	LeadAgentID  string `json:"lead_agent_id"`
	Repo         string `json:"repo,omitempty"`
	Base         string `json:"base,omitempty"`

	Repos map[string]string `json:"repos,omitempty"` // further repositories: root by name
}

// TeamInfo is one team in a list. Problem is set if its ledger cannot be read, or cannot be
// written at its path.
type TeamInfo struct {
	Key        string        `json:"team"`
	Name       string        `json:"name"`
	Path       string        `json:"path"`
	Repo       string        `json:"repo,omitempty"`
	CreatedAt  int64         `json:"createdAt,omitempty"`
	Members    int           `json:"members"` // without the lead
	Running    int           `json:"running"`
	Tasks      ledger.Counts `json:"tasks"`
	Supervisor int           `json:"supervisorPid,omitempty"`
	Down       int64         `json:"supervisorDownSince,omitempty"` // since when no supervisor maintains Running
	Silent     bool          `json:"supervisorSilent,omitempty"`    // there is one, but it does not answer
	Problem    string        `json:"problem,omitempty"`
	Hint       string        `json:"hint,omitempty"` // what to do about it
}

// TeamDeleteOut is the result of deleting a team.
type TeamDeleteOut struct {
	Success  bool         `json:"success"`
	Message  string       `json:"message"`
	TeamName string       `json:"team_name"`
	Outcome  string       `json:"outcome,omitempty"` // already_deleted
	Kept     []KeptBranch `json:"kept_branches,omitempty"`
	Rescued  []string     `json:"rescued,omitempty"` // refs of snapshots of unsaved work
	Restore  []string     `json:"restore,omitempty"` // commands that restore them, one each
	Removed  []string     `json:"removed_worktrees,omitempty"`
	Notes    []string     `json:"notes,omitempty"` // for example a failed teardown, a large file in a snapshot

	begun bool
}

// Begun reports whether the removal began. From then on, the end of the context does not stop it.
func (o TeamDeleteOut) Begun() bool { return o.begun }

// KeptBranch is a branch with commits that no other branch has.
type KeptBranch struct {
	Member string `json:"member"`
	Branch string `json:"branch"`
	Head   string `json:"head"`
	Why    string `json:"why"`
}

// SpawnIn spawns members. The caller sets its terminal (TMUX, TMUXPane) and the entry of a team
// file; the rest of the origin is filled in.
type SpawnIn = team.Spawn

// Spawned is a spawned member.
type Spawned struct {
	Status           string    `json:"status"` // "teammate_spawned"
	TeammateID       string    `json:"teammate_id"`
	AgentID          string    `json:"agent_id"`
	ChildSessionKey  string    `json:"childSessionKey"`
	Name             string    `json:"name"`
	Color            string    `json:"color"`
	TeamName         string    `json:"team_name"`
	AgentType        string    `json:"agent_type,omitempty"`
	Model            string    `json:"model,omitempty"`
	Prompt           string    `json:"prompt,omitempty"`
	PlanModeRequired bool      `json:"plan_mode_required"`
	Renamed          bool      `json:"renamed,omitempty"`
	Again            bool      `json:"again,omitempty"` // it reuses the worktree and branch left by an earlier member of its name
	PaneID           string    `json:"pane_id"`
	Worktree         string    `json:"worktree,omitempty"`
	Branch           string    `json:"branch,omitempty"`
	Pane             team.Pane `json:"pane"`
	Warnings         []string  `json:"warnings,omitempty"`
	Error            string    `json:"error,omitempty"`       // this one of several failed
	Approval         int64     `json:"approval_id,omitempty"` // Status approval_required: it waits for this approval
}

// SendIn sends a message. Recipient is a name, name@team or a session key.
type SendIn struct {
	Type      string `json:"type"` // message, broadcast, task_request, task_response, info, error, shutdown_request, shutdown_response, plan_approval_response
	Recipient string `json:"recipient,omitempty"`
	Content   string `json:"content"`
	Summary   string `json:"summary,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Parent    string `json:"parent,omitempty"`
	Approve   *bool  `json:"approve,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Task      string `json:"task_id,omitempty"` // subject of a task_request
	Forward   string `json:"forward,omitempty"` // id of a forwarded message; its text follows Content
	IdemKey   string `json:"idempotency_key,omitempty"`
}

// Sent is the state of a sent message: it is posted durably, and Deliveries says for each
// recipient whether the mailbox has it.
type Sent struct {
	Success    bool              `json:"success"`
	Message    string            `json:"message"`
	MessageID  string            `json:"message_id"`
	Deliveries []ledger.Delivery `json:"deliveries"`
	Recipients []string          `json:"recipients,omitempty"`
	Routing    *Routing          `json:"routing,omitempty"`
	RequestID  string            `json:"request_id,omitempty"`
	Target     string            `json:"target,omitempty"`      // of a shutdown request
	Approval   int64             `json:"approval_id,omitempty"` // nothing was sent yet: it waits for this approval
	NotReading []string          `json:"not_reading,omitempty"` // recipients that have never read their mail
}

// Routing describes the sender and the recipient.
type Routing struct {
	Sender      string `json:"sender"`
	SenderColor string `json:"senderColor,omitempty"`
	Target      string `json:"target"` // @name, or @team for a broadcast
	TargetColor string `json:"targetColor,omitempty"`
	Summary     string `json:"summary"`
	Content     string `json:"content"`
}

// TaskAddIn adds tasks.
type TaskAddIn struct {
	Tasks []ledger.NewTask `json:"tasks"`
}

// Progress is a snapshot of the task board for waiting and for screens.
type Progress struct {
	Counts  ledger.Counts   `json:"counts"`
	Tasks   []ledger.Task   `json:"tasks"`
	Members []ledger.Member `json:"members"`
	At      int64           `json:"at"`
	// Part is set if Tasks are only those in progress and those changed since the previous
	// snapshot; it summarises the whole board.
	Part *ledger.Board `json:"-"`
}

// WaitIn selects what to wait for: the named tasks, or all.
type WaitIn struct {
	Tasks   []string      `json:"tasks,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"` // 0: no limit
	// Each is called with every new snapshot, from one goroutine: the first and the last have the
	// whole board, those between a part.
	Each func(Progress) `json:"-"`
}

// InboxOut is the content of a mailbox.
type InboxOut struct {
	Agent   string       `json:"agent"`
	Entries []InboxEntry `json:"entries"`
	Prompt  string       `json:"prompt,omitempty"` // own unread mail as inserted into a conversation: see Conversation
}

// InboxEntry is one entry of a mailbox, with the kind of protocol message in it. Kind and Frame
// are the ledger's if it has the message; for entries written by other programs they are derived
// from the text and are not verified.
type InboxEntry struct {
	From      string `json:"from"`
	Text      string `json:"text"`
	Summary   string `json:"summary,omitempty"`
	Timestamp string `json:"timestamp"`
	Color     string `json:"color,omitempty"`
	Read      bool   `json:"read"`
	ID        string `json:"msg_id,omitempty"`
	Kind      string `json:"kind"` // "message", "shutdown_request", "idle_notification", ...
	// Verified reports whether the ledger has this message, with this recipient, sender and text.
	Verified bool            `json:"verified"`
	Frame    json.RawMessage `json:"frame,omitempty"`
	// MayBeKnown reports that the message was restored to a mailbox that had it before, without
	// evidence whether it was read.
	MayBeKnown bool `json:"mayBeKnown,omitempty"`
}
