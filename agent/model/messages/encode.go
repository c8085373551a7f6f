package messages

import (
	"encoding/json"
	"strconv"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/wire"
)

// maxOutput is the default of the request: every current model allows it.
const maxOutput = 32000

// maxMarks is the maximum number of cache marks on messages: the protocol permits four, and the
// tools and the system prompt have one each.
const maxMarks = 2

var mark = json.RawMessage(`{"type":"ephemeral"}`)

// head is the part of the body before the messages.
type head struct {
	Model       string        `json:"model"`
	MaxTokens   int           `json:"max_tokens"`
	Stream      bool          `json:"stream"`
	Temperature *float64      `json:"temperature,omitempty"`
	Thinking    *thinking     `json:"thinking,omitempty"`
	Output      *outputConfig `json:"output_config,omitempty"`
	Tools       []tool        `json:"tools,omitempty"`
	System      []*block      `json:"system,omitempty"`
}

type thinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens,omitempty"`
}

type outputConfig struct {
	Effort string `json:"effort"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       json.RawMessage `json:"cache_control,omitempty"`
}

// block is a newly created piece of content.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text,omitempty"`
	ID      string          `json:"id,omitempty"`
	Name    string          `json:"name,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	CallID  string          `json:"tool_use_id,omitempty"`
	Content string          `json:"content,omitempty"`
	Failed  bool            `json:"is_error,omitempty"`
	Cache   json.RawMessage `json:"cache_control,omitempty"`
}

// encode writes the body of a request.
func encode(r model.Request, self model.Ref) []byte {
	r = wire.NotBlank(r)
	h := head{Model: r.Model, MaxTokens: r.MaxOutput, Stream: true, Temperature: r.Temperature}
	if h.MaxTokens == 0 {
		h.MaxTokens = maxOutput
	}
	if n, err := strconv.Atoi(r.Effort); err == nil && n > 0 { // older models have a token budget instead
		h.Thinking = &thinking{Type: "enabled", Budget: n}
	} else if r.Effort != "" {
		h.Thinking, h.Output = &thinking{Type: "adaptive"}, &outputConfig{Effort: r.Effort}
	}
	for _, t := range wire.Tools(r.Tools) {
		h.Tools = append(h.Tools, tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	if n := len(h.Tools); n > 0 {
		h.Tools[n-1].Cache = mark
	}
	if r.System != "" {
		h.System = []*block{{Type: "text", Text: r.System, Cache: mark}}
	}

	msgs := wire.Conversation(r.Messages, self, callsOf)
	marks := 0
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Cache {
			marks++
			msgs[i].Cache = marks <= maxMarks
		}
	}
	body := wire.Encode(h)
	body = append(body[:len(body)-1], `,"messages":[`...)
	for i, m := range msgs {
		if i > 0 {
			body = append(body, ',')
		}
		ephemeral := ""
		if i == len(msgs)-1 {
			ephemeral = r.Ephemeral
		}
		body = append(body, `{"role":"`+string(m.Role)+`","content":`...)
		body = append(body, content(m, ephemeral)...)
		body = append(body, '}')
	}
	return append(body, `]}`...)
}

// content encodes the blocks of a message; ephemeral follows the cache mark.
func content(m model.Message, ephemeral string) json.RawMessage {
	if m.Raw != nil {
		return m.Raw
	}
	var blocks []*block
	for _, p := range m.Parts {
		switch {
		case p.Call != nil:
			input := p.Call.Input
			if len(input) == 0 || input[0] != '{' { // not JSON: the result says so
				input = json.RawMessage(`{}`)
			}
			blocks = append(blocks, &block{Type: "tool_use", ID: p.Call.ID, Name: p.Call.Name, Input: input})
		case p.Result != nil:
			blocks = append(blocks, &block{Type: "tool_result", CallID: p.Result.CallID, Content: p.Result.Text, Failed: p.Result.Failed})
		default:
			blocks = append(blocks, &block{Type: "text", Text: p.Text})
		}
	}
	if m.Cache {
		blocks[len(blocks)-1].Cache = mark
	}
	if ephemeral != "" {
		blocks = append(blocks, &block{Type: "text", Text: ephemeral})
	}
	return wire.Encode(blocks)
}

// callsOf returns the ids of the calls among blocks.
func callsOf(raw []byte) (ids []string, ok bool) {
	var blocks []struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	}
	if json.Unmarshal(raw, &blocks) != nil || len(blocks) == 0 {
		return nil, false
	}
	for _, b := range blocks {
		if b.Type == "tool_use" {
			ids = append(ids, b.ID)
		}
	}
	return ids, true
}
