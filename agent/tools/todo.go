package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// TodoItem is one line of the agent's own list.
type TodoItem struct {
	Text  string `json:"text"`
	State string `json:"state" jsonschema:"pending, doing or done"`
}

type todoIn struct {
	Items []TodoItem `json:"items" jsonschema:"the whole list; it replaces the one before"`
}

func (s *Space) todoTool() Tool {
	return Typed("todo", "Keep a list of what is to be done in this session. The list is shown with every request.", Own, false, nil,
		func(_ context.Context, _ Call, in todoIn) (Out, error) {
			done := 0
			for i, item := range in.Items {
				switch item.State {
				case "pending", "doing":
				case "done":
					done++
				default:
					return failed("item %d: state is %q, want pending, doing or done", i+1, item.State), nil
				}
			}
			s.mu.Lock()
			s.todo = in.Items
			s.mu.Unlock()
			return Out{Text: fmt.Sprintf("The list has %d items, %d done.", len(in.Items), done)}, nil
		})
}

// RestoreTodo restores the list from the input of an earlier todo call, which the transcript has
// after a restart.
func (s *Space) RestoreTodo(input json.RawMessage) {
	in, err := decode[todoIn](input)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.todo = in.Items
	s.mu.Unlock()
}

// Todo returns the list as text, "" without one.
func (s *Space) Todo() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return todoText(s.todo)
}

// TodoText formats the list in the input of a todo call.
func TodoText(input json.RawMessage) string {
	in, err := decode[todoIn](input)
	if err != nil {
		return ""
	}
	return todoText(in.Items)
}

func todoText(items []TodoItem) string {
	var out strings.Builder
	for _, item := range items {
		mark := map[string]string{"pending": "[ ]", "doing": "[>]", "done": "[x]"}[item.State]
		fmt.Fprintf(&out, "%s %s\n", mark, item.Text)
	}
	return out.String()
}
