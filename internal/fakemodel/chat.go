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
	message["tool_calls"] = []any{obj{"index": 0, "id": r.s.id("call"), "type": "function",
		"function": obj{"name": r.call.Name, "arguments": string(r.input)}}}
	return message, "tool_calls"
}

var chatUsage = obj{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}

func (p chat) whole(r reply) any {
	m, finish := p.message(r)
	return obj{"id": r.s.id("chatcmpl"), "object": "chat.completion", "created": 1, "model": r.model, "usage": chatUsage,
		"choices": []any{obj{"index": 0, "message": m, "finish_reason": finish}}}
}

func (p chat) events(r reply) []event {
	m, finish := p.message(r)
	id := r.s.id("chatcmpl")
	chunk := func(delta any, finish any) event {
		return event{data: obj{"id": id, "object": "chat.completion.chunk", "created": 1, "model": r.model,
			"choices": []any{obj{"index": 0, "delta": delta, "finish_reason": finish}}}}
	}
	return []event{
		chunk(m, nil), chunk(obj{}, finish),
		{data: obj{"id": id, "object": "chat.completion.chunk", "created": 1, "model": r.model, "choices": []any{}, "usage": chatUsage}},
		{data: "[DONE]"},
	}
}

func (chat) fail(status int, words string) any { return openAIError(status, words) }
