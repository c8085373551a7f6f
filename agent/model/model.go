package model

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// Ref names a model of a provider: "anthropic/claude-sonnet-4-5".
type Ref struct {
	Provider string // as in the configuration
	Model    string // the provider's own name for it; may contain slashes
}

// ParseRef parses provider/model. Errors are team.CodeInvalid.
func ParseRef(s string) (Ref, error) {
	provider, name, ok := strings.Cut(strings.TrimSpace(s), "/")
	if !ok || provider == "" || name == "" || strings.ContainsAny(provider+name, " \t\n\r") {
		return Ref{}, team.Errorf(team.CodeInvalid, "invalid model %q", s).WithReason(team.ReasonBadModel).
			WithHint("give provider/model, such as anthropic/claude-sonnet-4-5")
	}
	return Ref{Provider: provider, Model: name}, nil
}

// IsZero reports whether r names no model.
func (r Ref) IsZero() bool { return r == Ref{} }

func (r Ref) String() string {
	if r.IsZero() {
		return ""
	}
	return r.Provider + "/" + r.Model
}

// Role is the side of a conversation that a message belongs to. Results of calls are
// parts of messages of the user's side.
type Role string

// The two roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is one step of a conversation.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
	// From is the model that produced an assistant message.
	From Ref `json:"from,omitzero"`
	// Raw is the content of an assistant message as sent by its provider, in the form that the
	// provider accepts back. Only From gets it; every other model gets Parts.
	Raw json.RawMessage `json:"raw,omitempty"`
	// Cache requests a cache mark after this message, if the protocol has marks.
	Cache bool `json:"-"`
}

// Part is one piece of a message; exactly one field is set.
type Part struct {
	Text   string  `json:"text,omitempty"`
	Call   *Call   `json:"call,omitempty"`
	Result *Result `json:"result,omitempty"`
}

// Call is a model's request to run a tool.
type Call struct {
	ID   string `json:"id"` // unique in a conversation
	Name string `json:"name"`
	// Input is the model's text. Text that is not JSON is stored as a JSON string.
	Input json.RawMessage `json:"input"`
}

// Result answers a call. It is in the message that follows the call's.
type Result struct {
	CallID string `json:"callId"`
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
}

// Tool describes what a model may call.
type Tool struct {
	Name        string          `json:"name"` // letters, digits, _ and -; at most 64
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of the input, an object
}

// Request is the whole input of a model for one answer.
type Request struct {
	Model    string // the provider's own name for it
	System   string
	Tools    []Tool
	Messages []Message
	// Ephemeral is appended after everything that can be cached, as the last part of the last user
	// message. It is not part of the conversation.
	Ephemeral   string
	MaxOutput   int      // tokens; 0 for the provider's default
	Temperature *float64 // nil for the provider's default
	Effort      string   // reasoning effort, in the provider's terms; "" for its default
	CacheKey    string   // constant for a conversation: providers route by it
}

// Delta is a piece of an answer that is still streaming.
type Delta struct {
	Text     string
	Thinking string
	Call     *Call // a call has begun: its id and name
}

// Stop is the reason for the end of an answer.
type Stop string

// Stop reasons.
const (
	StopEnd     Stop = "end"     // finished
	StopCalls   Stop = "calls"   // waiting for the results of its calls
	StopLimit   Stop = "limit"   // the output limit was reached: an unfinished call is dropped
	StopRefused Stop = "refused" // the model refused
)

// Answer is one complete answer.
type Answer struct {
	Message Message
	Stop    Stop
	Usage   team.Usage // of this request only
	Notice  string     // remark about the provider for the user
}

// Info describes a model; a zero field is unknown.
type Info struct {
	ID        string `json:"id"` // the provider's own name for it
	Context   int    `json:"context,omitempty"`
	MaxOutput int    `json:"maxOutput,omitempty"`
	Price     *Price `json:"price,omitempty"`
}

// Price is in US dollars per million tokens.
type Price struct {
	Input      float64 `json:"input" yaml:"input"`
	Output     float64 `json:"output" yaml:"output"`
	CacheRead  float64 `json:"cacheRead" yaml:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite" yaml:"cacheWrite"`
}

// Provider is an endpoint that serves models. It is safe for concurrent use.
type Provider interface {
	// Stream requests one answer; it calls on with its pieces, in order, before it returns. Errors
	// are *Error or the context's; with one the answer has only the usage that was reported before it.
	Stream(ctx context.Context, r Request, on func(Delta)) (Answer, error)
	// Models lists the provider's models. Errors are *Error or the context's.
	Models(ctx context.Context) ([]Info, error)
}
