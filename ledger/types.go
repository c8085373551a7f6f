package ledger

import (
	"encoding/json"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Task is one row of the tasks table with its computed fields.
type Task struct {
	ID          string          `json:"id"` // "1", "2", ...: never reused
	Subject     string          `json:"subject"`
	Description string          `json:"description"`
	ActiveForm  string          `json:"activeForm,omitempty"`
	Status      team.TaskStatus `json:"status"`
	Owner       string          `json:"owner,omitempty"`     // session key of the claiming agent
	OwnerName   string          `json:"ownerName,omitempty"` // its name, kept after it has left
	DependsOn   []string        `json:"dependsOn"`
	BlockedBy   []string        `json:"blockedBy"` // dependencies not yet completed
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Priority    int             `json:"priority"`           // higher first
	Verify      string          `json:"verify,omitempty"`   // command that must succeed before it counts as completed
	VerifyBy    string          `json:"verifyBy,omitempty"` // author of the command; empty: not authorised, so it is not run for a foreign agent
	Attempt     int             `json:"attempt"`            // 1 for the first claim; later writes are fenced by it
	RetryPolicy
	Retries     int     `json:"retries,omitempty"`   // automatic retries so far
	NotBefore   int64   `json:"notBefore,omitempty"` // not ready before this time; only set while it waits for a retry
	LeaseUntil  int64   `json:"leaseUntil,omitempty"`
	CreatedAt   int64   `json:"createdAt"` // Unix milliseconds, like all times in this package
	ClaimedAt   int64   `json:"claimedAt,omitempty"`
	StartedAt   int64   `json:"startedAt,omitempty"`
	CompletedAt int64   `json:"completedAt,omitempty"` // also when it failed
	Result      *Result `json:"result,omitempty"`
	Review      int64   `json:"review,omitempty"` // the approval that an in_progress task awaits
	// Verification is the one that an in_progress task awaits, before any
	// review.
	Verification int64 `json:"verification,omitempty"`
}

// RetryPolicy sets how often a failed task is retried automatically. A new task
// may also set it in its metadata, with the same names.
type RetryPolicy struct {
	MaxRetries   int   `json:"maxRetries,omitempty"`
	RetryBackoff int64 `json:"retryBackoff,omitempty"` // milliseconds before the first retry, doubled for each further one; 0: DefaultBackoff
}

// Result is the owner's report of a finished task.
type Result struct {
	Summary  string   `json:"summary,omitempty"`
	Commit   string   `json:"commit,omitempty"` // full hash; empty if nothing changed
	Files    []string `json:"files,omitempty"`
	ExitCode int      `json:"exitCode,omitempty"`
	Error    string   `json:"error,omitempty"` // last lines of a failed run
}

// NewTask describes a task to create. Ref is an optional name that DependsOn of
// tasks in the same batch may use instead of an id.
type NewTask struct {
	Ref         string          `json:"ref,omitempty"`
	Subject     string          `json:"subject"`
	Description string          `json:"description"`
	ActiveForm  string          `json:"activeForm,omitempty"`
	DependsOn   []string        `json:"dependsOn,omitempty"` // ids, or refs of the batch
	Metadata    json.RawMessage `json:"metadata,omitempty"`  // a JSON object
	Priority    int             `json:"priority,omitempty"`
	Verify      string          `json:"verify,omitempty"`
	RetryPolicy
}

// TaskFilter narrows Tasks. The zero value selects every task, oldest first.
type TaskFilter struct {
	Status   team.TaskStatus
	Owner    string // session key
	OpenOnly bool   // neither completed nor failed
	Newest   bool   // newest first
	IDs      []string
	Metadata map[string]string // top-level keys and their values as text: "v2", "3", "true"
	Limit    int
}

// Counts holds the counts of the task board.
type Counts struct {
	Pending    int `json:"pending"`
	Ready      int `json:"ready"` // claimable now: a part of Pending
	Claimed    int `json:"claimed"`
	InProgress int `json:"inProgress"`
	Completed  int `json:"completed"`
	Failed     int `json:"failed"`
	Stuck      int `json:"stuck"` // pending because of a failed dependency, direct or not: a part of Pending
}

// Total returns the number of tasks.
func (c Counts) Total() int {
	return c.Pending + c.Claimed + c.InProgress + c.Completed + c.Failed
}

// Member is one row of the members table: the desired and the observed state of
// a member, and the facts from which config.json is published.
type Member struct {
	SessionKey string    `json:"sessionKey"`
	AgentID    string    `json:"agentId"` // name@team
	Name       string    `json:"name"`
	Role       team.Role `json:"role"`
	JoinedAt   int64     `json:"joinedAt"`
	RemovedAt  int64     `json:"removedAt,omitempty"` // when it left the roster; the row stays for its tasks and mail

	Spec  team.MemberSpec `json:"spec"`
	Color string          `json:"color,omitempty"`

	Desired    team.Desired  `json:"desired"`
	Observed   team.Observed `json:"observed"`
	Activity   team.Activity `json:"activity"`
	ActivityAt int64         `json:"activityAt,omitempty"`
	WaitsFor   team.WaitFor  `json:"waitsFor,omitempty"`  // of a waiting agent
	LimitedTo  int64         `json:"limitedTo,omitempty"` // when a limited agent continues; 0: unknown
	TurnError  string        `json:"turnError,omitempty"` // of an idle agent: the error of its last turn
	Ready      bool          `json:"ready"`
	Generation string        `json:"generation,omitempty"` // of the latest start
	PID        int           `json:"pid,omitempty"`        // of the agent, while it is running
	PaneID     string        `json:"paneId,omitempty"`
	StartedAt  int64         `json:"startedAt,omitempty"`
	EndedAt    int64         `json:"endedAt,omitempty"` // when the generation ended; 0 while it is alive
	Restarts   int           `json:"restarts"`          // automatic starts by the supervisor after the first
	Failures   int           `json:"failures"`          // consecutive, since the last healthy period
	NextStart  int64         `json:"nextStart,omitempty"`
	ExitText   string        `json:"exitText,omitempty"`  // "exit 3", "signal SIGKILL", "exit unknown"
	Reason     string        `json:"reason,omitempty"`    // of its state
	StopOrder  *StopOrder    `json:"stopOrder,omitempty"` // while it must be stopped: how

	Worktree string `json:"worktree,omitempty"` // path; empty when it shares the repository
	Branch   string `json:"branch,omitempty"`
	Base     string `json:"base,omitempty"` // commit at which the branch started
}

// StopOrder describes how to stop a member, for a supervisor that succeeds the
// one that got the request.
type StopOrder struct {
	From   string `json:"from,omitempty"` // the requester; empty: the lead
	Reason string `json:"reason,omitempty"`
	Wait   int64  `json:"wait,omitempty"`   // milliseconds for the agent's answer and exit; 0: the default
	Remove bool   `json:"remove,omitempty"` // it leaves the roster once it has stopped
}

// Message is one posted message.
type Message struct {
	ID        string          `json:"id"` // uuid; the msg_id of its mailbox entries
	Seq       int64           `json:"seq"`
	Run       int64           `json:"run"`
	Kind      team.Kind       `json:"kind"`
	From      string          `json:"from"`         // agent name
	To        string          `json:"to,omitempty"` // agent name; empty for a broadcast
	Parent    string          `json:"parent,omitempty"`
	Hop       int             `json:"hop,omitempty"`
	IdemKey   string          `json:"idempotencyKey,omitempty"`
	RequestID string          `json:"requestId,omitempty"`
	Text      string          `json:"text"` // becomes the text of the mailbox entry
	Summary   string          `json:"summary,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	At        int64           `json:"at"`
}

// NewMessage describes a message to post. ToSession pins the recipient's
// session, so that mail for a reused name is never misrouted, and ToGen its
// generation: a shutdown request is for the running one.
type NewMessage struct {
	Kind      team.Kind       `json:"kind"`
	From      string          `json:"from"`
	To        string          `json:"to,omitempty"`           // empty: every member on the roster except From
	ToSession string          `json:"toSession,omitempty"`    // refuse if To has another session by now
	ToGen     string          `json:"toGeneration,omitempty"` // refuse if To has another generation by now
	Parent    string          `json:"parent,omitempty"`
	Hop       int             `json:"hop,omitempty"`
	IdemKey   string          `json:"idempotencyKey,omitempty"` // the same key from the same session returns the first message
	RequestID string          `json:"requestId,omitempty"`
	Text      string          `json:"text"`
	Summary   string          `json:"summary,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
}

// Delivery is the state of a message for one recipient.
type Delivery struct {
	MessageID string             `json:"messageId"`
	Seq       int64              `json:"seq"`
	Recipient string             `json:"recipient"` // agent name
	Session   string             `json:"session"`   // session key of the recipient at the time of posting
	State     team.DeliveryState `json:"state"`
	Reason    string             `json:"reason,omitempty"`   // for held and dropped
	Evidence  string             `json:"evidence,omitempty"` // what the state is based on
	At        int64              `json:"at"`                 // time of the last change of state
}

// Event is one row of the append-only audit log.
type Event struct {
	Seq    int64           `json:"seq"`
	At     int64           `json:"at"`
	Who    string          `json:"who"`           // agent name, "team-lead", or "supervisor"
	Via    string          `json:"via,omitempty"` // the screen by which a person did it: "page", "screen"
	What   string          `json:"what"`          // "task.claimed", "member.exited", ...
	ID     string          `json:"id,omitempty"`
	Before string          `json:"before,omitempty"`
	After  string          `json:"after,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
}

// TeamRow is the one row of the team table.
type TeamRow struct {
	Key         string   `json:"key"`
	Name        string   `json:"name"` // as the user spelled it
	Description string   `json:"description,omitempty"`
	Repo        string   `json:"repo,omitempty"` // main work tree or bare repository
	Base        string   `json:"base,omitempty"` // commit from which branches start; empty: HEAD at spawn
	WorktreeDir string   `json:"worktreeDir,omitempty"`
	CreatedAt   int64    `json:"createdAt"`
	LeadSession string   `json:"leadSession"`
	Status      string   `json:"status"` // "active", "shutdown"
	Hidden      []string `json:"hiddenPaneIds,omitempty"`
}

// Lease is how long a claim lasts without renewal.
const Lease = 2 * time.Minute
