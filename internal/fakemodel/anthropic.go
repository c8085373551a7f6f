package fakemodel

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/internal/script"
)

// anthropic is the Messages protocol: POST /v1/messages.
type anthropic struct{}

func (anthropic) name() string { return "anthropic" }

func (anthropic) ask(body []byte) (question, error) {
	var in struct {
		Model    string
		Stream   bool
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools        []struct{ Name string }
		OutputConfig struct {
			Format json.RawMessage
		} `json:"output_config"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return question{}, fmt.Errorf("read a Messages request: %w", err)
	}
	q := question{model: in.Model, stream: in.Stream, json: len(in.OutputConfig.Format) > 2 && string(in.OutputConfig.Format) != "null"}
	for _, m := range in.Messages {
		p := script.Part{Model: m.Role == "assistant"}
		p.Text, p.Tool = content(m.Content)
		q.parts = append(q.parts, p)
	}
	for _, t := range in.Tools {
		q.tools = append(q.tools, script.Tool{Name: t.Name})
	}
	return q, nil
}

// content returns the text of a content field, a string or blocks, including those in tool
// results; tool reports whether there is such a result.
func content(raw json.RawMessage) (text string, tool bool) {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, false
	}
	var blocks []struct {
		Type, Text string
		Content    json.RawMessage
	}
	if json.Unmarshal(raw, &blocks) != nil {
		return "", false
	}
	var out []string
	for _, b := range blocks {
		if b.Text != "" {
			out = append(out, b.Text)
		}
		if b.Type == "tool_result" {
			tool = true
			inner, _ := content(b.Content)
			out = append(out, inner)
		}
	}
	return strings.Join(out, "\n"), tool
}

func (anthropic) block(r reply) obj {
	if r.call != nil {
		return obj{"type": "tool_use", "id": r.s.id("toolu"), "name": r.call.Name, "input": r.input}
	}
	return obj{"type": "text", "text": r.say}
}

func stopReason(r reply) string {
	if r.call != nil {
		return "tool_use"
	}
	return "end_turn"
}

func (a anthropic) whole(r reply) any {
	blocks := []any{a.block(r)}
	if r.rich {
		blocks = append([]any{obj{"type": "thinking", "thinking": thought, "signature": sign(thought)}}, blocks...)
	}
	return obj{
		"id": r.s.id("msg"), "type": "message", "role": "assistant", "model": r.model, "content": blocks,
		"stop_reason": stopReason(r), "stop_sequence": nil, "usage": a.usage(r),
	}
}

func (anthropic) usage(r reply) obj {
	u := r.usage
	return obj{"input_tokens": u.input - u.cached, "cache_read_input_tokens": u.cached, "cache_creation_input_tokens": 0, "output_tokens": u.output}
}

func (a anthropic) events(r reply) []event {
	start := a.usage(r)
	start["output_tokens"] = 1
	out := []event{{"message_start", obj{"type": "message_start", "message": obj{
		"id": r.s.id("msg"), "type": "message", "role": "assistant", "model": r.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": start,
	}}}}
	index := 0
	add := func(block obj, deltas ...obj) {
		out = append(out, event{"content_block_start", obj{"type": "content_block_start", "index": index, "content_block": block}})
		for _, d := range deltas {
			out = append(out, event{"content_block_delta", obj{"type": "content_block_delta", "index": index, "delta": d}})
		}
		out = append(out, event{"content_block_stop", obj{"type": "content_block_stop", "index": index}})
		index++
	}
	if r.rich {
		add(obj{"type": "thinking", "thinking": "", "signature": ""}, obj{"type": "thinking_delta", "thinking": thought},
			obj{"type": "signature_delta", "signature": sign(thought)})
	}
	block := a.block(r)
	var deltas []obj
	if r.call != nil {
		block["input"] = obj{}
		for _, piece := range r.pieces(string(r.input)) {
			deltas = append(deltas, obj{"type": "input_json_delta", "partial_json": piece})
		}
	} else {
		block["text"] = ""
		for _, piece := range r.pieces(r.say) {
			deltas = append(deltas, obj{"type": "text_delta", "text": piece})
		}
	}
	add(block, deltas...)
	return append(out,
		event{"message_delta", obj{"type": "message_delta", "delta": obj{"stop_reason": stopReason(r), "stop_sequence": nil}, "usage": obj{"output_tokens": r.usage.output}}},
		event{"message_stop", obj{"type": "message_stop"}})
}

// errorTypes are the vendor's names of statuses.
var errorTypes = map[int]string{400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}

func (anthropic) fail(status int, words string) any {
	typ, ok := errorTypes[status]
	if !ok {
		typ = "api_error"
	}
	return obj{"type": "error", "error": obj{"type": typ, "message": words}}
}
