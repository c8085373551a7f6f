package openai

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/wire"
)

// Responses is an endpoint with the Responses protocol. Its base address contains the version. The
// provider stores nothing: each request has the whole conversation.
type Responses struct{ wire.Endpoint }

// Models implements model.Provider.
func (p *Responses) Models(ctx context.Context) ([]model.Info, error) { return models(ctx, p.Endpoint) }

// Stream implements model.Provider.
func (p *Responses) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Answer, error) {
	self := model.Ref{Provider: p.Name, Model: r.Model}
	s, err := p.Post(ctx, "/responses", p.encode(r, self))
	if err != nil {
		return model.Answer{}, err
	}
	defer s.Close()
	d := responseDecoder{e: p.Endpoint, ids: wire.NewIDs(r.Messages), on: on}
	if s.Plain {
		whole, err := s.Whole()
		if err != nil {
			return model.Answer{}, err
		}
		if err := d.end(whole); err != nil {
			return model.Answer{}, err
		}
		return d.answer(self)
	}
	for !d.ended {
		e, err := s.Next()
		if err != nil {
			return model.Answer{}, p.Ended(err, "response.completed")
		}
		if err := d.event(e); err != nil {
			return model.Answer{}, err
		}
	}
	return d.answer(self)
}

type responseHead struct {
	Model        string            `json:"model"`
	Stream       bool              `json:"stream"`
	Store        bool              `json:"store"`
	MaxOutput    int               `json:"max_output_tokens,omitempty"`
	Temperature  *float64          `json:"temperature,omitempty"`
	Reasoning    map[string]string `json:"reasoning,omitempty"`
	Include      []string          `json:"include,omitempty"`
	CacheKey     string            `json:"prompt_cache_key,omitempty"`
	Tools        []parameters      `json:"tools,omitempty"`
	Instructions string            `json:"instructions,omitempty"`
}

// item is a newly created item of the input.
type item struct {
	Type      string          `json:"type"`
	Role      string          `json:"role,omitempty"`
	Content   []itemText      `json:"content,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Output    *string         `json:"output,omitempty"`
}

type itemText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// encode writes the body of a request.
func (p *Responses) encode(r model.Request, self model.Ref) []byte {
	r = wire.NotBlank(r)
	h := responseHead{
		Model: r.Model, Stream: true, MaxOutput: r.MaxOutput, Temperature: r.Temperature, CacheKey: r.CacheKey, Instructions: r.System,
	}
	if r.Effort != "" {
		h.Reasoning = map[string]string{"effort": r.Effort}
	}
	if reasons(r.Model) || r.Effort != "" {
		h.Include = []string{"reasoning.encrypted_content"}
	}
	no := false
	for _, t := range wire.Tools(r.Tools) {
		h.Tools = append(h.Tools, parameters{Type: "function", Name: t.Name, Description: t.Description, Parameters: t.Schema, Strict: &no})
	}
	var input []json.RawMessage
	for _, m := range wire.Conversation(r.Messages, self, itemCallsOf) {
		input = append(input, items(m)...)
	}
	if r.Ephemeral != "" {
		input = append(input, items(model.Message{Role: model.RoleUser, Parts: []model.Part{{Text: r.Ephemeral}}})...)
	}
	body := wire.Encode(h)
	body = append(body[:len(body)-1], `,"input":`...)
	return append(append(body, wire.List(input)...), '}')
}

// reasons reports whether a model of OpenAI returns reasoning: other models refuse the request for
// it.
func reasons(name string) bool {
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, family := range []string{"o1", "o3", "o4", "gpt-5", "codex"} {
		if strings.HasPrefix(name, family) {
			return true
		}
	}
	return false
}

// items encodes a message.
func items(m model.Message) (out []json.RawMessage) {
	if m.Raw != nil {
		_ = json.Unmarshal(m.Raw, &out) // itemCallsOf has parsed it
		return out
	}
	kind := "input_text"
	if m.Role == model.RoleAssistant {
		kind = "output_text"
	}
	for _, p := range m.Parts {
		switch {
		case p.Call != nil:
			out = append(out, wire.Encode(item{Type: "function_call", CallID: p.Call.ID, Name: p.Call.Name, Arguments: arguments(p.Call)}))
		case p.Result != nil:
			out = append(out, wire.Encode(item{Type: "function_call_output", CallID: p.Result.CallID, Output: &p.Result.Text}))
		default:
			out = append(out, wire.Encode(item{Type: "message", Role: string(m.Role), Content: []itemText{{kind, p.Text}}}))
		}
	}
	return out
}

// itemCallsOf returns the ids of the calls among items.
func itemCallsOf(raw []byte) (ids []string, ok bool) {
	var all []struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
	}
	if json.Unmarshal(raw, &all) != nil || len(all) == 0 {
		return nil, false
	}
	for _, i := range all {
		if i.Type == "function_call" {
			ids = append(ids, i.CallID)
		}
	}
	return ids, true
}
