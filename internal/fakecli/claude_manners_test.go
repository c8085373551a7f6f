package fakecli

import (
	"encoding/json"
	"testing"
)

// What a hook adds to a prompt precedes the note of the interrupt before it, and does not pass
// an answer or the result of a tool.
func TestBubbled(t *testing.T) {
	t.Parallel()
	text := func(s string) any { return map[string]string{"type": "text", "text": s} }
	talk := []message{
		{"user", []any{text("first"), text("UserPromptSubmit" + hookContext + "one")}},
		{"assistant", "ok"},
		{"user", []any{map[string]any{"type": "tool_result", "content": "done"}, text("PostToolUse" + hookContext + "two")}},
		{"user", "[Request interrupted by user]"},
		{"user", []any{text("second"), text("UserPromptSubmit" + hookContext + "three")}},
	}
	want := []message{
		{"user", []any{text("UserPromptSubmit" + hookContext + "one")}},
		{"user", []any{text("first")}},
		{"assistant", "ok"},
		{"user", []any{map[string]any{"type": "tool_result", "content": "done"}}},
		{"user", []any{text("PostToolUse" + hookContext + "two"), text("UserPromptSubmit" + hookContext + "three")}},
		{"user", "[Request interrupted by user]"},
		{"user", []any{text("second")}},
	}
	got, err := json.Marshal(bubbled(talk))
	if err != nil {
		t.Fatal(err)
	}
	if wanted, _ := json.Marshal(want); string(got) != string(wanted) {
		t.Errorf("got\n%s\nwant\n%s", got, wanted)
	}
}
