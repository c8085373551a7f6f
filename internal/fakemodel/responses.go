package fakemodel

import (
	"encoding/json"
	"fmt"

	"github.com/teamctl/teamctl/internal/script"
)

// responses is OpenAI's Responses protocol: POST /v1/responses.
type responses struct{}

func (responses) name() string { return "responses" }

func (responses) ask(body []byte) (question, error) {
	type tool struct {
		Type, Name string
		Tools      []struct{ Name string }
	}
	var in struct {
		Model  string
		Stream bool
		Input  json.RawMessage
		Tools  []tool
		Text   struct {
			Format struct{ Type string }
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return question{}, fmt.Errorf("read a Responses request: %w", err)
	}
	q := question{model: in.Model, stream: in.Stream, json: in.Text.Format.Type == "json_schema"}
	var plain string
	var items []struct {
		Type, Role string
		Content    json.RawMessage
		Output     json.RawMessage
	}
	if json.Unmarshal(in.Input, &plain) == nil {
		q.parts = []script.Part{{Text: plain}}
	} else if err := json.Unmarshal(in.Input, &items); err != nil {
		return question{}, fmt.Errorf("read the input of a Responses request: %w", err)
	}
	for _, i := range items {
		switch i.Type {
		case "message", "":
			text, _ := content(i.Content)
			q.parts = append(q.parts, script.Part{Model: i.Role == "assistant", Text: text})
		case "function_call", "custom_tool_call", "local_shell_call", "reasoning":
			q.parts = append(q.parts, script.Part{Model: true})
		case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
			text, _ := content(i.Output)
			q.parts = append(q.parts, script.Part{Text: text, Tool: true})
		}
	}
	for _, t := range in.Tools {
		if t.Type == "namespace" {
			for _, sub := range t.Tools {
				q.tools = append(q.tools, script.Tool{Name: sub.Name, Space: t.Name})
			}
			continue
		}
		if t.Name != "" {
			q.tools = append(q.tools, script.Tool{Name: t.Name})
		}
	}
	return q, nil
}

func (responses) item(r reply) obj {
	if r.call != nil {
		call := obj{"type": "function_call", "id": r.s.id("fc"), "call_id": r.s.id("call"), "name": r.call.Name, "arguments": string(r.input), "status": "completed"}
		if r.call.Space != "" {
			call["namespace"] = r.call.Space
		}
		return call
	}
	return obj{"type": "message", "id": r.s.id("msg"), "role": "assistant", "status": "completed",
		"content": []any{obj{"type": "output_text", "text": r.say, "annotations": []any{}}}}
}

func (responses) response(r reply, status string, items ...any) obj {
	if items == nil {
		items = []any{}
	}
	return obj{"id": r.s.id("resp"), "object": "response", "created_at": 1, "model": r.model, "status": status, "output": items,
		"usage": obj{"input_tokens": r.usage.input, "input_tokens_details": obj{"cached_tokens": r.usage.cached}, "output_tokens": r.usage.output,
			"output_tokens_details": obj{"reasoning_tokens": 0}, "total_tokens": r.usage.input + r.usage.output}}
}

// items are the output: in strict mode it begins with reasoning.
func (p responses) items(r reply) []any {
	if !r.rich {
		return []any{p.item(r)}
	}
	id := r.s.id("rs")
	return []any{obj{"type": "reasoning", "id": id, "summary": []any{}, "encrypted_content": sign(id)}, p.item(r)}
}

func (p responses) whole(r reply) any { return p.response(r, "completed", p.items(r)...) }

func (p responses) events(r reply) []event {
	items := p.items(r)
	open := p.response(r, "in_progress")
	closed := p.response(r, "completed", items...)
	closed["id"] = open["id"]
	var out []event
	add := func(name string, data obj) {
		data["type"] = name
		if r.rich {
			data["sequence_number"] = len(out)
		}
		out = append(out, event{name, data})
	}
	add("response.created", obj{"response": open})
	for i, item := range items {
		add("response.output_item.added", obj{"output_index": i, "item": item})
		switch one := item.(obj); {
		case one["type"] == "message":
			for _, piece := range r.pieces(r.say) {
				add("response.output_text.delta", obj{"item_id": one["id"], "output_index": i, "content_index": 0, "delta": piece})
			}
		case one["type"] == "function_call" && r.rich:
			for _, piece := range r.pieces(string(r.input)) {
				add("response.function_call_arguments.delta", obj{"item_id": one["id"], "output_index": i, "delta": piece})
			}
		}
		add("response.output_item.done", obj{"output_index": i, "item": item})
	}
	add("response.completed", obj{"response": closed})
	return out
}

func (responses) fail(status int, words string) any { return openAIError(status, words) }

func openAIError(status int, words string) any {
	return obj{"error": obj{"message": words, "type": "fake_error", "code": fmt.Sprint(status)}}
}
