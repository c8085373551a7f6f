package view

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Request is an approval in full. Its texts come from agents.
type Request struct {
	ID       int64     `json:"id"`
	Kind     NeedKind  `json:"kind"`
	State    string    `json:"state"` // pending, approved, rejected, expired
	Member   string    `json:"member"`
	Agent    string    `json:"agent,omitempty"` // kind of the member
	Mode     string    `json:"mode,omitempty"`  // its permission mode
	Branch   string    `json:"branch,omitempty"`
	Task     string    `json:"task,omitempty"`
	Subject  string    `json:"subject"`
	Asked    time.Time `json:"asked"`
	Deadline time.Time `json:"deadline,omitzero"`

	Tool        string          `json:"tool,omitempty"`
	Description string          `json:"description,omitempty"` // of the tool's use, as the agent puts it
	Command     string          `json:"command,omitempty"`     // what a shell would run
	Input       json.RawMessage `json:"input,omitempty"`       // of the tool, all of it
	Plan        string          `json:"plan,omitempty"`        // Markdown
	Questions   []Question      `json:"questions,omitempty"`
	Fields      []Field         `json:"fields,omitempty"` // what else it says
	Rule        string          `json:"rule,omitempty"`   // that would allow it from now on, as team.yaml has it

	Feedback   string `json:"feedback,omitempty"`
	AnsweredBy string `json:"answeredBy,omitempty"`
}

// Question is what an agent asks, with the answers that it offers.
type Question struct {
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"`
}

// Field is a text with a name.
type Field struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Seen is a hash of everything that a person decides by. An answer names it, and is
// refused where the request is another one by then.
func (r Request) Seen() string {
	r.Agent, r.Mode, r.Branch, r.Rule = "", "", "", "" // of the member, which may go on
	b, err := json.Marshal(r)
	if err != nil { // an input that is no JSON
		b = []byte(r.Subject + "\x00" + string(r.Input))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// MemberDetail is a member beside what its row says.
type MemberDetail struct {
	Member
	Agent    string   `json:"agent"`
	Backend  string   `json:"backend,omitempty"`
	Branch   string   `json:"branch,omitempty"`
	Worktree string   `json:"worktree,omitempty"`
	Ahead    int      `json:"ahead"`             // commits of its branch that its base does not have
	Dirty    int      `json:"dirty"`             // files with changes that are not committed
	Unknown  string   `json:"unknown,omitempty"` // why git could not be asked
	Mail     int      `json:"mail"`              // messages that it has not got yet
	Output   []string `json:"output,omitempty"`  // its last lines
}

// TaskDetail is a task in full.
type TaskDetail struct {
	Task
	Description string    `json:"description,omitempty"`
	Verify      string    `json:"verify,omitempty"`
	DependsOn   []string  `json:"dependsOn"`
	Created     time.Time `json:"created"`
	Error       string    `json:"error,omitempty"`  // of the last attempt
	Output      string    `json:"output,omitempty"` // of the last attempt
	Events      []Event   `json:"events"`           // its history
}

// Message is a message with how far it has come. Those of a conversation stand together,
// the first at Depth 0.
type Message struct {
	ID       string    `json:"id"`
	Root     string    `json:"root"`
	Depth    int       `json:"depth"`
	At       time.Time `json:"at"`
	Kind     team.Kind `json:"kind"`
	From     string    `json:"from"`
	To       string    `json:"to,omitempty"` // "" for a broadcast
	Text     string    `json:"text"`
	Receipts []Receipt `json:"receipts"`
}

// Receipt is how far a message has come to one recipient.
type Receipt struct {
	To     string             `json:"to"`
	State  team.DeliveryState `json:"state"`
	At     time.Time          `json:"at"`
	Reason string             `json:"reason,omitempty"`
}

// Usage is what was used. A Spent that is not Known is not zero: nobody has told.
type Usage struct {
	Members []Spent `json:"members"`
	Agents  []Spent `json:"agents"` // by kind
	Team    Spent   `json:"team"`
	Limits  []Limit `json:"limits"`
}

// Spent is what somebody has used of tokens and dollars.
type Spent struct {
	Name      string  `json:"name,omitempty"`
	Agent     string  `json:"agent,omitempty"`
	Known     bool    `json:"known"` // of Tokens
	Tokens    int64   `json:"tokens"`
	CostKnown bool    `json:"costKnown"`
	Cost      float64 `json:"cost"`
	Budget    string  `json:"budget,omitempty"` // in words
	Share     float64 `json:"share,omitempty"`  // of the budget, 1 for all
	Held      string  `json:"held,omitempty"`   // why it gets no prompts now
}

// Limit is a provider that takes no more for now.
type Limit struct {
	Agent string    `json:"agent"`
	Until time.Time `json:"until,omitzero"` // zero: not known
}

// Changes are the files that a member has changed.
type Changes struct {
	Member    string   `json:"member"`
	Base      string   `json:"base"`                // what they are compared with
	Patch     string   `json:"patch"`               // unified diff
	Untracked []string `json:"untracked,omitempty"` // files that git does not know
	// Also names the other members that have changed a file.
	Also map[string][]string `json:"also,omitempty"`
	Why  string              `json:"why,omitempty"` // there is nothing to compare
}

// Merge is a merge that was asked for.
type Merge struct {
	ID     int64     `json:"id"`
	Member string    `json:"member"`
	Branch string    `json:"branch"`
	Target string    `json:"target"`
	State  string    `json:"state"`
	Files  []string  `json:"files,omitempty"` // in conflict
	Why    string    `json:"why,omitempty"`
	Log    string    `json:"log,omitempty"` // path of the gate's output
	Task   string    `json:"task,omitempty"`
	Asked  time.Time `json:"asked"`
	Ended  time.Time `json:"ended,omitzero"`
}
