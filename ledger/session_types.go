package ledger

import (
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

// Session is one conversation of the built-in agent.
type Session struct {
	Key              string          `json:"key"`
	AgentID          string          `json:"agentId"`       // its spec at birth
	ActiveAgentID    string          `json:"activeAgentId"` // its spec from the next turn on
	ProviderOverride string          `json:"providerOverride,omitempty"`
	ModelOverride    string          `json:"modelOverride,omitempty"`
	Deliver          bool            `json:"deliver,omitempty"` // may send to the outside
	Owner            string          `json:"owner,omitempty"`   // key of its parent session
	Channel          string          `json:"channel"`
	Routing          json.RawMessage `json:"routing,omitempty"`
	Label            string          `json:"label,omitempty"`
	Depth            int             `json:"depth,omitempty"` // 0 without a parent
	Member           string          `json:"member"`          // session key of the member whose process runs it
	State            SessionState    `json:"state"`
	LastSeq          int64           `json:"lastSeq"`   // of its newest entry
	CreatedAt        int64           `json:"createdAt"` // Unix milliseconds, like all times in this package
	UpdatedAt        int64           `json:"updatedAt"`
}

// SessionState is whether a session takes input.
type SessionState string

// Session states.
const (
	SessionOpen   SessionState = "open"
	SessionClosed SessionState = "closed"
)

// EntryKind is what an entry of a transcript is.
type EntryKind string

// Kinds of entry. An event begins no turn and is not shown to a model; a compaction
// stands for everything before the entry that its meta names.
const (
	EntryUser       EntryKind = "user"
	EntryAssistant  EntryKind = "assistant"
	EntryToolResult EntryKind = "tool_result"
	EntryEvent      EntryKind = "event"
	EntryCompaction EntryKind = "compaction"
)

// NewEntry is an entry to append. An entry whose Source the session has already is not
// appended again: the result has the first one.
type NewEntry struct {
	Kind       EntryKind       `json:"kind"`
	Content    string          `json:"content"`
	Raw        string          `json:"raw,omitempty"`  // the provider's own bytes; text, because encoding JSON again changes it
	Meta       json.RawMessage `json:"meta,omitempty"` // an object
	Channel    string          `json:"channel,omitempty"`
	Provenance json.RawMessage `json:"provenance,omitempty"` // an object: who, from which session, message id
	Source     string          `json:"source,omitempty"`
}

// Entry is one entry of a transcript. Entries are never changed.
type Entry struct {
	ID      int64  `json:"id"`
	Session string `json:"session"`
	Seq     int64  `json:"seq"` // 1, 2, ... in its session
	NewEntry
	Job int64 `json:"job,omitempty"` // the turn that appended it
	At  int64 `json:"at"`
}

// TurnJob is one turn of a session: queued, running, or ended.
type TurnJob struct {
	ID         int64           `json:"id"`
	Session    string          `json:"session"`
	Lane       team.Lane       `json:"lane"`
	Cause      team.TurnCause  `json:"cause"`
	State      team.TurnState  `json:"state"`
	First      bool            `json:"first,omitempty"` // before all that waits in its session; takes no backlog
	Attempt    int             `json:"attempt"`         // 1 for the first start
	Crashes    int             `json:"crashes,omitempty"`
	Generation string          `json:"generation,omitempty"` // of the process that runs it
	LeaseUntil int64           `json:"leaseUntil,omitempty"`
	NotBefore  int64           `json:"notBefore,omitempty"`
	Yielded    bool            `json:"yielded,omitempty"` // waits outside of its lane
	Hop        int             `json:"hop,omitempty"`
	Cancel     string          `json:"cancel,omitempty"` // why it is to end; its process ends it
	Reason     string          `json:"reason,omitempty"` // why it waits, or how it ended
	Effective  json.RawMessage `json:"effective,omitempty"`
	Usage      json.RawMessage `json:"usage,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	CreatedAt  int64           `json:"createdAt"`
	StartedAt  int64           `json:"startedAt,omitempty"`
	EndedAt    int64           `json:"endedAt,omitempty"`
}

// Ref is the fence of the turn's writes.
func (j TurnJob) Ref() TurnRef {
	return TurnRef{Job: j.ID, Attempt: j.Attempt, Generation: j.Generation}
}

// TurnRef names one start of a turn: later writes of its process are valid only for it.
type TurnRef struct {
	Job        int64  `json:"job"`
	Attempt    int    `json:"attempt"`
	Generation string `json:"generation"`
}

// CallState is the state of a tool call.
type CallState string

// Call states. Asked is committed with the answer that asks for it, begun before it
// may change anything. Lost has a result that says so: its process ended in between.
const (
	CallAsked CallState = "asked"
	CallBegun CallState = "begun"
	CallEnded CallState = "ended"
	CallLost  CallState = "lost"
)

// NewCall is a tool call that an answer asks for.
type NewCall struct {
	CallID   string `json:"callId"`
	Name     string `json:"name"`
	Input    string `json:"input"`              // as the model wrote it, which may be no JSON
	ReadOnly bool   `json:"readOnly,omitempty"` // may be run again
}

// ToolCall is one tool call of a session.
type ToolCall struct {
	ID      int64  `json:"id"`
	Session string `json:"session"`
	Job     int64  `json:"job"`
	Asked   int64  `json:"asked"` // seq of the entry that asks for it
	NewCall
	State   CallState `json:"state"`
	Entry   int64     `json:"entry,omitempty"` // seq of its result
	BegunAt int64     `json:"begunAt,omitempty"`
	EndedAt int64     `json:"endedAt,omitempty"`
}

// BacklogKind is what a line of a backlog is.
type BacklogKind string

// Kinds of backlog.
const (
	BacklogMessage BacklogKind = "message"
	BacklogFinish  BacklogKind = "finish" // a child session has ended its turn
	BacklogResume  BacklogKind = "resume" // a turn that was interrupted by a message
)

// MaxBacklog is how many items a session's backlog holds.
const MaxBacklog = 16

// BacklogItem waits for the next turn of its session.
type BacklogItem struct {
	ID         int64           `json:"id,omitempty"`
	Session    string          `json:"session,omitempty"`
	Kind       BacklogKind     `json:"kind"`
	Text       string          `json:"text"`
	Meta       json.RawMessage `json:"meta,omitempty"`
	Provenance json.RawMessage `json:"provenance,omitempty"`
	Source     string          `json:"source,omitempty"`
	Message    string          `json:"message,omitempty"`   // whose delivery is accepted with the entry
	Recipient  string          `json:"recipient,omitempty"` // name of the member that it was sent to
	Hop        int             `json:"hop,omitempty"`
	At         int64           `json:"at,omitempty"`
}

// Announced tells a parent session that a turn of its child has ended.
type Announced struct {
	ID     int64           `json:"id"`
	Parent string          `json:"parent"`
	Child  string          `json:"child"`
	Key    string          `json:"key"`  // AnnounceKey
	Text   string          `json:"text"` // what the parent's transcript gets
	Meta   json.RawMessage `json:"meta"` // a team.Announce: what the parent's next turn, and no other, is shown
	Hop    int             `json:"hop"`
	Job    int64           `json:"job,omitempty"` // the turn that is shown it
	At     int64           `json:"at"`
}
