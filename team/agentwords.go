package team

import (
	"encoding/json"
	"time"
)

// The words in which rooms talk about an agent that is not ours: what was seen of
// it, what is given to it, what it asks.

// WaitFor says whom or what a waiting agent waits for.
type WaitFor string

// What an agent waits for: all of them need a person, or the lead.
const (
	WaitPermission WaitFor = "permission"
	WaitPlan       WaitFor = "plan"
	WaitQuestion   WaitFor = "question"
	WaitTrust      WaitFor = "trust" // also onboarding, an update prompt, the approval of an MCP server
	WaitLogin      WaitFor = "login"
)

// Tier is where an observation comes from. A lower number is trusted more.
type Tier int

// Tiers of trust.
const (
	TierProcess Tier = iota + 1 // the kernel
	TierChannel                 // the CLI's own status channel
	TierHook                    // a hook that the CLI called
	TierTitle                   // the terminal's title and progress
	TierScreen                  // rules over the screen
)

// String is the tier's word for people.
func (t Tier) String() string {
	switch t {
	case TierProcess:
		return "process"
	case TierChannel:
		return "channel"
	case TierHook:
		return "hook"
	case TierTitle:
		return "title"
	case TierScreen:
		return "screen"
	}
	return "unknown"
}

// Observation is one thing that was seen of an agent. An empty Activity says
// nothing of what it does.
type Observation struct {
	Tier         Tier      `json:"tier"`
	Activity     Activity  `json:"activity,omitempty"`
	For          WaitFor   `json:"for,omitempty"`   // of Waiting
	Until        time.Time `json:"until,omitzero"`  // of Limited; zero: not known
	Since        time.Time `json:"since,omitzero"`  // of Limited: when its words were seen first; zero: At
	Ready        bool      `json:"ready,omitempty"` // it takes messages now
	At           time.Time `json:"at"`
	Source       string    `json:"source"`                 // "hook Stop", "thread/status/changed", "rule trust-dialog"
	Evidence     []string  `json:"evidence,omitempty"`     // the lines that matched, as they were
	Conversation string    `json:"conversation,omitempty"` // the CLI's own id of it, once known
	Turn         string    `json:"turn,omitempty"`
	Mode         Mode      `json:"mode,omitempty"`     // that it says it works in
	Receipts     []Receipt `json:"receipts,omitempty"` // of mail given before
	Ask          *Ask      `json:"ask,omitempty"`
	Settled      string    `json:"settled,omitempty"`     // id of an Ask that somebody has answered in the CLI itself
	Interrupted  bool      `json:"interrupted,omitempty"` // the turn was ended by somebody
	Confirm      bool      `json:"confirm,omitempty"`     // idle only once its screen shows that too: a dialog may come up with it
	Failed       string    `json:"failed,omitempty"`      // the error that ended the turn, in the CLI's words; no limit
	Usage        *Usage    `json:"usage,omitempty"`       // running totals of the conversation
	NoHooks      *bool     `json:"noHooks,omitempty"`     // whether the generation runs without its hooks, once that shows
}

// Began is when a limit was seen first.
func (o Observation) Began() time.Time {
	if o.Since.IsZero() {
		return o.At
	}
	return o.Since
}

// Receipt says how far one message has come.
type Receipt struct {
	ID       string        `json:"id"`
	State    DeliveryState `json:"state"`
	Evidence string        `json:"evidence,omitempty"` // required for Accepted and later
}

// Ask is a question of an agent that a person, or the lead, has to answer.
type Ask struct {
	ID          string          `json:"id"` // the CLI's own: the answer goes back by it
	For         WaitFor         `json:"for"`
	Tool        string          `json:"tool,omitempty"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"`
	Suggestions json.RawMessage `json:"suggestions,omitempty"`
	Plan        string          `json:"plan,omitempty"`
	PlanPath    string          `json:"planPath,omitempty"`  // the file that the plan stands in
	ToolUseID   string          `json:"toolUseId,omitempty"` // the CLI's own id of the call
	// What it is about, where the CLI says so by itself and not in its agent's words.
	Command string   `json:"command,omitempty"`
	Paths   []string `json:"paths,omitempty"`
	// Keys of its dialog answer it, and no words go with them.
	Keys bool `json:"keys,omitempty"`
	// Screen is set where nothing but its screen tells of it: what it says may be any
	// program's words.
	Screen bool `json:"screen,omitempty"`
}

// Reply answers an Ask.
type Reply struct {
	ID       string          `json:"id"`
	For      WaitFor         `json:"for"`
	Allow    bool            `json:"allow"`
	Feedback string          `json:"feedback,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"` // changed by whoever answered
	Mode     Mode            `json:"mode,omitempty"`  // of an approved plan
}

// Usage is what a conversation has used so far; zero is not known.
type Usage struct {
	InputTokens      int64   `json:"inputTokens,omitempty"` // all of them, cached ones included
	OutputTokens     int64   `json:"outputTokens,omitempty"`
	CachedTokens     int64   `json:"cachedTokens,omitempty"`     // of the input, read from a cache
	CacheWriteTokens int64   `json:"cacheWriteTokens,omitempty"` // of the input, written to a cache
	ReasoningTokens  int64   `json:"reasoningTokens,omitempty"`  // of the output
	CostUSD          float64 `json:"costUsd,omitempty"`
	CostKnown        bool    `json:"costKnown,omitempty"` // CostUSD is all that it cost, even where it is zero
	Turns            int64   `json:"turns,omitempty"`     // of the built-in agent
	Unknown          int64   `json:"unknown,omitempty"`   // requests that are not counted, or in part: they ended before their answer
}

// Mail is one message as it is given to an agent.
type Mail struct {
	ID        string `json:"id"`
	Seq       int64  `json:"seq"`
	From      string `json:"from"`
	Kind      Kind   `json:"kind"`
	Summary   string `json:"summary,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	Raw       string `json:"raw"`  // as it was posted; a protocol message is JSON
	Text      string `json:"text"` // rendered and escaped: what the conversation gets
	// Again: an earlier handover of it was begun and nothing shows how it ended.
	// It is given only where it can be shown that the CLI does not have it.
	Again bool `json:"again,omitempty"`
}

// Outcome is what became of handing one Mail over.
type Outcome struct {
	ID string `json:"id"`
	// State is Injected (handed to the CLI, no evidence yet), Accepted (with
	// Evidence) or Held (not now, for Reason: tried again when something changes).
	// Empty: left alone, the agent fetches it by itself.
	State    DeliveryState `json:"state,omitempty"`
	Evidence string        `json:"evidence,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	// Pending answers Mail.Again: it is in a queue of the CLI's own, or in a turn that goes
	// on, and nothing can show yet that it arrived.
	Pending bool `json:"pending,omitempty"`
}
