package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
)

// Caller is who asks. A person at a shell is the lead with Person set; an agent
// is the member that its environment names.
type Caller struct {
	Name    string // agent name; team.LeadName for a person
	Session string
	Role    team.Role
	Person  bool
	Mode    team.Mode // permission mode that narrows the role; empty: none does
	// Conversation is the key of the session of the built-in agent that the call comes
	// from; empty: from none, or from the member's own.
	Conversation string
}

// Person is the caller at a shell that no agent runs in.
func Person() Caller { return Caller{Name: team.LeadName, Role: team.RoleLeader, Person: true} }

// Lead is the caller of a program that leads the team, such as a model with an MCP
// client: it has the lead's role, permission mode and place on the roster. What waits
// for a person waits for one all the same.
func Lead(m ledger.Member) Caller {
	return Caller{Name: m.Name, Session: m.SessionKey, Role: team.RoleLeader, Mode: m.Spec.Mode}
}

// Supervisor is what the operations need of a team's supervisor; the control
// client implements it over the socket.
type Supervisor interface {
	Spawn(ctx context.Context, in team.SpawnRequest) (supervisor.SpawnOut, error)
	StopMembers(ctx context.Context, in team.StopRequest) ([]team.Stopped, error)
	StartMembers(ctx context.Context, names []string) ([]ledger.Member, error)
	RestartMembers(ctx context.Context, names []string) ([]ledger.Member, error)
	// RenameMember gives another name to the member of a session, which has no process.
	RenameMember(ctx context.Context, session, name string) (ledger.Member, error)
	Capture(ctx context.Context, name string, scrollback int) (string, error)
	TypeText(ctx context.Context, name, text string, enter bool) error
	Hide(ctx context.Context, name string, hidden bool) error
	PauseMembers(ctx context.Context, names []string, on bool) ([]ledger.Member, error)
	RecoverMembers(ctx context.Context, names []string) ([]team.Recovered, error)
	Status(ctx context.Context) (supervisor.Status, error)
	// CarryOut does what an approval lets happen, if that was not done before.
	CarryOut(ctx context.Context, approval int64) (ledger.Outcome, error)
	Debug(ctx context.Context) (team.Debug, error)
	// Explain tells what a member does and who says so.
	Explain(ctx context.Context, name string) (team.Report, error)
	// InterruptMember ends the turn that a member is in.
	InterruptMember(ctx context.Context, name string) error
	Goroutines(ctx context.Context) (string, error)
	// Quit ends the supervisor. With closeTeam nothing may run any more, and the
	// backends remove what they keep for the team (the private tmux server).
	Quit(ctx context.Context, closeTeam bool) error
}

// Env is what the operations run in. The zero value of each field but Home is
// filled by cmd; tests hand in their own.
type Env struct {
	Home team.Home
	// Dial returns the team's supervisor. With start it is started when there is
	// none; without, a team that has none gives nil and no error.
	Dial func(ctx context.Context, l team.Layout, start bool) (Supervisor, error)
	// Writer returns the ledger writer of this process for an open ledger, and the way to
	// the supervisor for messages, which may be nil.
	Writer func(l team.Layout, direct ledger.Writer) (ledger.Writer, mail.Settler)
	// Watch tells of changes; nil: every opened team has its own.
	Watch *dirwatch.Hub
	// CheckModel reports what keeps a model (provider/model; "" is the default) from being
	// asked, or else what a person should know of it; nil: nothing is checked.
	CheckModel func(ctx context.Context, ref string) (note string, err error)
	// CheckConfine reports what keeps commands from being confined here; nil: nothing does.
	CheckConfine func() error
	// Models lists what can be asked: of one provider, or of all that are configured;
	// nil: nothing is known.
	Models func(ctx context.Context, provider string, refresh bool) ([]ProviderModels, error)
	// OwnSpecs are the agent specs that the person keeps in the home directory, and what is
	// wrong with those that cannot be used; nil: none.
	OwnSpecs func() (specs []team.AgentSpec, troubles []error)
	// Dir is the directory by which a team is chosen where several exist and none is
	// named; "" chooses none.
	Dir string

	step func(name string) // of a test
}

// TeamCreateIn (R25, R78). Repo empty: no repository, no worktrees.
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

// TeamCreateOut (R84).
type TeamCreateOut struct {
	TeamName     string `json:"team_name"`
	TeamFilePath string `json:"team_file_path"`
	LeadAgentID  string `json:"lead_agent_id"`
	Repo         string `json:"repo,omitempty"`
	Base         string `json:"base,omitempty"`

	Repos map[string]string `json:"repos,omitempty"` // further repositories: root by name
}

// TeamInfo is one team in a list. A team whose ledger cannot be read, or cannot be
// written where it is, has Problem set.
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
	Problem    string        `json:"problem,omitempty"`
	Hint       string        `json:"hint,omitempty"` // what to do about it
}

// TeamDeleteOut (R92).
type TeamDeleteOut struct {
	Success  bool         `json:"success"`
	Message  string       `json:"message"`
	TeamName string       `json:"team_name"`
	Kept     []KeptBranch `json:"kept_branches,omitempty"`
	Rescued  []string     `json:"rescued,omitempty"` // refs of snapshots of unsaved work
	Restore  []string     `json:"restore,omitempty"` // commands that bring them back, one each
	Removed  []string     `json:"removed_worktrees,omitempty"`
	Notes    []string     `json:"notes,omitempty"` // a teardown that failed, a large file in a snapshot

	begun bool
}

// Begun reports whether the removal began. From then on the end of the context does
// not stop it.
func (o TeamDeleteOut) Begun() bool { return o.begun }

// KeptBranch is a branch that holds commits which are nowhere else.
type KeptBranch struct {
	Member string `json:"member"`
	Branch string `json:"branch"`
	Head   string `json:"head"`
	Why    string `json:"why"`
}

// SpawnIn asks for members. Of its origin the caller gives the terminal that it asks
// from (TMUX, TMUXPane) and the entry of a team file; the rest is filled in.
type SpawnIn = team.Spawn

// Spawned (R29, R113).
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
	Again            bool      `json:"again,omitempty"` // it has the worktree and branch that an earlier member of its name left
	PaneID           string    `json:"pane_id"`
	Worktree         string    `json:"worktree,omitempty"`
	Branch           string    `json:"branch,omitempty"`
	Pane             team.Pane `json:"pane"`
	Warnings         []string  `json:"warnings,omitempty"`
	Error            string    `json:"error,omitempty"`       // this one of several failed
	Approval         int64     `json:"approval_id,omitempty"` // Status approval_required: it waits for this one
}

// SendIn (R44-R49, R93-R96). Recipient is a name, name@team or a session key.
type SendIn struct {
	Type      string `json:"type"` // message, broadcast, task_request, task_response, info, error, shutdown_request, shutdown_response, plan_approval_response
	Recipient string `json:"recipient,omitempty"`
	Content   string `json:"content"`
	Summary   string `json:"summary,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Parent    string `json:"parent,omitempty"`
	Approve   *bool  `json:"approve,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Task      string `json:"task_id,omitempty"` // that a task_request is about
	Forward   string `json:"forward,omitempty"` // id of a message that is handed on; its text follows Content
	IdemKey   string `json:"idempotency_key,omitempty"`
}

// Sent says what became of a message: posted durably, and per recipient whether
// it is in the mailbox already.
type Sent struct {
	Success    bool              `json:"success"`
	Message    string            `json:"message"`
	MessageID  string            `json:"message_id"`
	Deliveries []ledger.Delivery `json:"deliveries"`
	Recipients []string          `json:"recipients,omitempty"`
	Routing    *Routing          `json:"routing,omitempty"`
	RequestID  string            `json:"request_id,omitempty"`
	Target     string            `json:"target,omitempty"`      // of a shutdown request
	Approval   int64             `json:"approval_id,omitempty"` // nothing was sent yet: it waits for this one
	NotReading []string          `json:"not_reading,omitempty"` // recipients that have never read their mail
}

// Routing says who wrote to whom (R100).
type Routing struct {
	Sender      string `json:"sender"`
	SenderColor string `json:"senderColor,omitempty"`
	Target      string `json:"target"` // @name, or @team for a broadcast
	TargetColor string `json:"targetColor,omitempty"`
	Summary     string `json:"summary"`
	Content     string `json:"content"`
}

// TaskAddIn (R34-R36).
type TaskAddIn struct {
	Tasks []ledger.NewTask `json:"tasks"`
}

// Progress is a snapshot of the task board for waiting and for screens.
type Progress struct {
	Counts  ledger.Counts   `json:"counts"`
	Tasks   []ledger.Task   `json:"tasks"`
	Members []ledger.Member `json:"members"`
	At      int64           `json:"at"`
	// Part is set where Tasks are only those in work and those that have changed since
	// the snapshot before, and tells what the whole board comes to.
	Part *ledger.Board `json:"-"`
}

// WaitIn says what to wait for: the tasks named, or all of them.
type WaitIn struct {
	Tasks   []string      `json:"tasks,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"` // 0: for ever
	// Each is called with every new snapshot, from one goroutine: the first and the last
	// are of the whole board, those between of a part.
	Each func(Progress) `json:"-"`
}

// InboxOut is a mailbox as it stands.
type InboxOut struct {
	Agent   string       `json:"agent"`
	Entries []InboxEntry `json:"entries"`
	Prompt  string       `json:"prompt,omitempty"` // own unread mail as it is put into a conversation: see Conversation
}

// InboxEntry is one entry of a mailbox, with the kind of protocol message it carries.
// Kind and Frame are the ledger's where it has the message; of an entry that another
// program wrote they are what its text says, and nobody vouches for them.
type InboxEntry struct {
	From      string `json:"from"`
	Text      string `json:"text"`
	Summary   string `json:"summary,omitempty"`
	Timestamp string `json:"timestamp"`
	Color     string `json:"color,omitempty"`
	Read      bool   `json:"read"`
	ID        string `json:"msg_id,omitempty"`
	Kind      string `json:"kind"` // "message", "shutdown_request", "idle_notification", ...
	// Verified says that the ledger has this message, to this member, from this sender
	// and in these words.
	Verified bool            `json:"verified"`
	Frame    json.RawMessage `json:"frame,omitempty"`
	// MayBeKnown says that the message was put back into a mailbox that had it before, and
	// nothing shows whether it was read.
	MayBeKnown bool `json:"mayBeKnown,omitempty"`
}
