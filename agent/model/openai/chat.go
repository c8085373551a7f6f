package openai

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/wire"
)

// Chat is an endpoint with the Chat Completions protocol. Its base address contains the version.
type Chat struct {
	wire.Endpoint
	// OpenAI is set for OpenAI's own endpoints, which accept fields that others refuse.
	OpenAI bool
}

// Models implements model.Provider.
func (p *Chat) Models(ctx context.Context) ([]model.Info, error) { return models(ctx, p.Endpoint) }

// Stream implements model.Provider.
func (p *Chat) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Answer, error) {
	self := model.Ref{Provider: p.Name, Model: r.Model}
	s, err := p.Post(ctx, "/chat/completions", p.encode(r, self))
	if err != nil {
		return model.Answer{}, err
	}
	defer s.Close()
	d := chatDecoder{e: p.Endpoint, ids: wire.NewIDs(r.Messages), on: on}
	if s.Plain {
		whole, err := s.Whole()
		if err != nil {
			return model.Answer{}, err
		}
		if err := d.event(whole); err != nil {
			return model.Answer{}, err
		}
		return d.answer(self)
	}
	for {
		e, err := s.Next()
		if err != nil && d.finish != "" {
			return d.answer(self) // at most usage follows
		}
		if err != nil {
			return model.Answer{Usage: d.used()}, p.Ended(err, "finish_reason")
		}
		if string(e.Data) == "[DONE]" {
			return d.answer(self)
		}
		if err := d.event(e.Data); err != nil {
			return model.Answer{Usage: d.used()}, err
		}
	}
}

type chatHead struct {
	Model         string         `json:"model"`
	Stream        bool           `json:"stream"`
	StreamOptions map[string]any `json:"stream_options"`
	MaxTokens     int            `json:"max_tokens,omitempty"`
	MaxCompletion int            `json:"max_completion_tokens,omitempty"`
	Temperature   *float64       `json:"temperature,omitempty"`
	Effort        string         `json:"reasoning_effort,omitempty"`
	CacheKey      string         `json:"prompt_cache_key,omitempty"`
	Tools         []chatTool     `json:"tools,omitempty"`
}

type chatTool struct {
	Type     string     `json:"type"`
	Function parameters `json:"function"`
}

// chatMessage is a newly created message.
type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Calls   []chatCall      `json:"tool_calls,omitempty"`
	CallID  string          `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// encode writes the body of a request.
func (p *Chat) encode(r model.Request, self model.Ref) []byte {
	r = wire.NotBlank(r)
	h := chatHead{
		Model: r.Model, Stream: true, StreamOptions: map[string]any{"include_usage": true},
		Temperature: r.Temperature, Effort: r.Effort,
	}
	if p.OpenAI {
		h.MaxCompletion, h.CacheKey = r.MaxOutput, r.CacheKey
	} else {
		h.MaxTokens = r.MaxOutput
	}
	for _, t := range wire.Tools(r.Tools) {
		h.Tools = append(h.Tools, chatTool{"function", parameters{Name: t.Name, Description: t.Description, Parameters: t.Schema}})
	}
	var all []json.RawMessage
	if r.System != "" {
		all = append(all, wire.Encode(chatMessage{Role: "system", Content: wire.Quote(r.System)}))
	}
	msgs := wire.Conversation(r.Messages, self, chatCallsOf)
	for i, m := range msgs {
		ephemeral := ""
		if i == len(msgs)-1 {
			ephemeral = r.Ephemeral
		}
		all = append(all, chatMessages(m, ephemeral)...)
	}
	body := wire.Encode(h)
	body = append(body[:len(body)-1], `,"messages":`...)
	return append(append(body, wire.List(all)...), '}')
}

// chatMessages encodes a message: the results of calls are separate messages. Text is one string,
// since not every server accepts lists, or two consecutive user messages.
func chatMessages(m model.Message, ephemeral string) (out []json.RawMessage) {
	if m.Raw != nil {
		return []json.RawMessage{m.Raw}
	}
	var texts []string
	var calls []chatCall
	for _, p := range m.Parts {
		switch {
		case p.Call != nil:
			c := chatCall{ID: p.Call.ID, Type: "function"}
			c.Function.Name, c.Function.Arguments = p.Call.Name, arguments(p.Call)
			calls = append(calls, c)
		case p.Result != nil:
			out = append(out, wire.Encode(chatMessage{Role: "tool", CallID: p.Result.CallID, Content: wire.Quote(p.Result.Text)}))
		default:
			texts = append(texts, p.Text)
		}
	}
	if ephemeral != "" {
		texts = append(texts, ephemeral)
	}
	if len(texts) > 0 || len(calls) > 0 {
		one := chatMessage{Role: string(m.Role), Content: json.RawMessage("null"), Calls: calls}
		if len(texts) > 0 {
			one.Content = wire.Quote(strings.Join(texts, "\n\n"))
		}
		out = append(out, wire.Encode(one))
	}
	return out
}

// chatCallsOf returns the ids of the calls in a stored message.
func chatCallsOf(raw []byte) (ids []string, ok bool) {
	var m struct {
		Role  string `json:"role"`
		Calls []struct {
			ID string `json:"id"`
		} `json:"tool_calls"`
	}
	if json.Unmarshal(raw, &m) != nil || m.Role != string(model.RoleAssistant) {
		return nil, false
	}
	for _, c := range m.Calls {
		ids = append(ids, c.ID)
	}
	return ids, true
}
