package fakemodel

import (
	"encoding/json"
	"fmt"

	"github.com/teamctl/teamctl/internal/script"
)

// chat is OpenAI's Chat Completions protocol: POST /v1/chat/completions.
type chat struct{}

func (chat) name() string { return "chat" }

func (chat) ask(body []byte) (question, error) {
	var in struct {
		Model    string
		Stream   bool
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []struct {
			Function struct{ Name string }
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return question{}, fmt.Errorf("read a Chat Completions request: %w", err)
	}
	q := question{model: in.Model, stream: in.Stream}
	for _, m := range in.Messages {
		text, _ := content(m.Content)
		q.parts = append(q.parts, script.Part{Model: m.Role == "assistant", Text: text, Tool: m.Role == "tool"})
	}
	for _, t := range in.Tools {
		q.tools = append(q.tools, script.Tool{Name: t.Function.Name})
	}
	return q, nil
}

func (chat) message(r reply) (message obj, finish string) {
	message = obj{"role": "assistant", "content": r.say}
	if r.call == nil {
		return message, "stop"
	}
	message["content"] = nil
	call := obj{"index": 0, "id": r.s.id("call"), "type": "function", "function": obj{"name": r.call.Name, "arguments": string(r.input)}}
	if r.rich {
		call["extra_content"] = obj{"google": obj{"thought_signature": sign(call["id"].(string))}}
	}
	message["tool_calls"] = []any{call}
	return message, "tool_calls"
}

func (chat) usage(r reply) obj {
	u := r.usage
	return obj{"prompt_tokens": u.input, "completion_tokens": u.output, "total_tokens": u.input + u.output, "prompt_tokens_details": obj{"cached_tokens": u.cached}}
}

func (p chat) whole(r reply) any {
	m, finish := p.message(r)
	return obj{"id": r.s.id("chatcmpl"), "object": "chat.completion", "created": 1, "model": r.model, "usage": p.usage(r),
		"choices": []any{obj{"index": 0, "message": m, "finish_reason": finish}}}
}

func (p chat) events(r reply) []event {
	m, finish := p.message(r)
	id := r.s.id("chatcmpl")
	chunk := func(delta any, finish any) event {
		return event{data: obj{"id": id, "object": "chat.completion.chunk", "created": 1, "model": r.model,
			"choices": []any{obj{"index": 0, "delta": delta, "finish_reason": finish}}}}
	}
	var out []event
	if calls, _ := m["tool_calls"].([]any); r.rich && r.call != nil {
		call := calls[0].(obj)
		call["function"].(obj)["arguments"] = ""
		out = append(out, chunk(m, nil))
		for _, piece := range r.pieces(string(r.input)) {
			out = append(out, chunk(obj{"tool_calls": []any{obj{"index": 0, "function": obj{"arguments": piece}}}}, nil))
		}
	} else if r.rich {
		for _, piece := range r.pieces(r.say) {
			out = append(out, chunk(obj{"role": "assistant", "content": piece, "reasoning_content": nil}, nil))
		}
	} else {
		out = append(out, chunk(m, nil))
	}
	return append(out, chunk(obj{}, finish),
		event{data: obj{"id": id, "object": "chat.completion.chunk", "created": 1, "model": r.model, "choices": []any{}, "usage": p.usage(r)}},
		event{data: "[DONE]"})
}

func (chat) fail(status int, words string) any { return openAIError(status, words) }
