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
	Model    string // the provider's own name of it; may contain slashes
}

// ParseRef reads provider/model. Errors are team.CodeInvalid.
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

// The two sides.
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
	// Raw is the content of an assistant message as its provider sent it, in the form in
	// which that provider takes it back. Only From gets it; every other model gets Parts.
	Raw json.RawMessage `json:"raw,omitempty"`
	// Cache asks for a cache mark behind this message where the protocol has marks.
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
	// Input is as the model wrote it. Text that is not JSON is here as a JSON string.
	Input json.RawMessage `json:"input"`
}

// Result answers a call. It is in the message right after that of the call.
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

// Request is everything that a model is told for one answer.
type Request struct {
	Model    string // the provider's own name of it
	System   string
	Tools    []Tool
	Messages []Message
	// Ephemeral is appended behind everything that a cache could keep: as the last part
	// of the last message of the user's side. It is part of no conversation.
	Ephemeral   string
	MaxOutput   int      // tokens; 0 for the provider's default
	Temperature *float64 // nil for the provider's default
	Effort      string   // how long to reason, in the provider's words; "" for its default
	CacheKey    string   // stable for a conversation: providers route by it
}

// Delta is a piece of an answer that is still streaming.
type Delta struct {
	Text     string
	Thinking string
	Call     *Call // a call has begun: its id and name
}

// Stop is the reason why an answer has ended.
type Stop string

// The reasons.
const (
	StopEnd     Stop = "end"     // nothing more to say
	StopCalls   Stop = "calls"   // it waits for the results of its calls
	StopLimit   Stop = "limit"   // the limit of output was reached: an unfinished call is left out
	StopRefused Stop = "refused" // the model refuses
)

// Answer is one complete answer.
type Answer struct {
	Message Message
	Stop    Stop
	Usage   team.Usage // of this request alone
	Notice  string     // what the person should know about the provider
}

// Info describes a model; a zero field is unknown.
type Info struct {
	ID        string `json:"id"` // the provider's own name of it
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

// Provider is an endpoint that serves models. It may be used by many goroutines.
type Provider interface {
	// Stream asks for one answer; on is called with its pieces, in order, before Stream
	// returns. Errors are *Error or the context's.
	Stream(ctx context.Context, r Request, on func(Delta)) (Answer, error)
	// Models lists what the provider serves. Errors are *Error or the context's.
	Models(ctx context.Context) ([]Info, error)
}
