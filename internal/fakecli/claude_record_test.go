package fakecli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
)

// recording returns a session of the newest Claude Code whose hooks add a text that has the event's
// name in it, and the transcript that it writes once flush is called.
func recording(t *testing.T) (c *claudeSession, flush func(), transcript string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	hooks := map[string][]hookGroup{}
	for _, event := range []string{"UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"} {
		answer := `{"hookSpecificOutput":{"hookEventName":"` + event + `","additionalContext":"added by ` + event + `"}}`
		if event == "PreToolUse" {
			answer = ""
		}
		hooks[event] = []hookGroup{{Hooks: []hookDef{{Command: "cat >/dev/null; printf '%s' '" + answer + "'"}}}}
	}
	c = &claudeSession{engine: NewEngine("", t.TempDir()), hooks: &hookSet{events: hooks, ctx: ctx}}
	c.engine.Keep = func(json.RawMessage) {}
	transcript = filepath.Join(t.TempDir(), "transcript.jsonl")
	return c, c.recordsTo(ctx, transcript), transcript
}

// TestTranscriptOfHooks: the transcript has what hooks have added, and the answers of those after a tool
// and at the end of a turn, as Claude Code 2.1.329 writes them: each follows the line before it, and
// what the end of a turn has added follows the model's answer.
func TestTranscriptOfHooks(t *testing.T) {
	t.Parallel()
	c, flush, transcript := recording(t)
	text := func(s string) any { return map[string]string{"type": "text", "text": s} }
	said := func(event, tool string) any {
		return text(c.context(event, tool, c.hooks.run(t.Context(), event, obj{"tool_name": tool}).context))
	}
	e := c.engine
	e.append(message{"user", []any{text("go"), said("UserPromptSubmit", "")}})
	e.append(message{"assistant", []any{toolUse{Type: "tool_use", ID: "toolu_1", Name: "Bash"}}})
	c.hooks.run(t.Context(), "PreToolUse", obj{"tool_name": "Bash"})
	e.append(message{"user", []any{map[string]any{"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}, said("PostToolUse", "Bash")}})
	e.append(message{"assistant", "over"})
	e.append(message{"user", []any{said("Stop", "")}})
	flush()
	data, err := os.ReadFile(transcript)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	last := ""
	for line := range bytes.Lines(data) {
		var l struct {
			Type, UUID, Version string
			Parent              string `json:"parentUuid"`
			Attachment          struct {
				Type, HookEvent, HookName, ToolUseID, Stdout string
				Content                                      any
			}
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if l.Parent != last || l.UUID == "" || l.Version != claudeNewest {
			t.Errorf("%s follows %q, not %q", line, l.Parent, last)
		}
		last = l.UUID
		if a := l.Attachment; a.Type != "" {
			l.Type = a.Type + " " + a.HookEvent + " " + a.HookName + " " + a.ToolUseID
			if (a.Type == "hook_success") != (a.Stdout != "") {
				t.Errorf("%s", line)
			}
		}
		got = append(got, l.Type)
	}
	want := []string{
		"user", "hook_additional_context UserPromptSubmit UserPromptSubmit ", "assistant",
		"user", "hook_success PostToolUse PostToolUse:Bash toolu_1", "hook_additional_context PostToolUse PostToolUse:Bash toolu_1", "assistant",
		"hook_success Stop Stop ", "hook_additional_context Stop Stop ",
	}
	a, _ := json.Marshal(got) // strings only: it cannot fail
	b, _ := json.Marshal(want)
	if !bytes.Equal(a, b) {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
	v, _ := adapter.ParseVersion(claudeNewest)
	if tr := adapter.ReadTranscript(adapter.Claude, data); !tr.Holds("added by PostToolUse") || tr.Holds("added by Stop") || !tr.Kept(v, "added by Stop") {
		t.Errorf("read as %+v", tr)
	}
	if id, open := lastLine(transcript); id != last || open {
		t.Errorf("resumed from %q, open %v; want %q", id, open, last)
	}
}

// TestResumed: a conversation is resumed with what hooks have added to the last input, which gets an
// answer of the program's own; what the end of a turn has added needs none.
func TestResumed(t *testing.T) {
	t.Parallel()
	text := func(s string) any { return map[string]string{"type": "text", "text": s} }
	prompt, end := message{"user", []any{text("go"), text("UserPromptSubmit" + hookContext + "one")}}, message{"user", []any{text("Stop" + hookContext + "two")}}
	for name, c := range map[string]struct{ talk, want []message }{
		"a prompt": {[]message{prompt}, []message{prompt, {"assistant", noResponse}}},
		"the end":  {[]message{prompt, {"assistant", "ok"}, end}, []message{prompt, {"assistant", "ok"}, end}},
	} {
		got, _ := json.Marshal(resumed(c.talk)) // strings only: it cannot fail
		if want, _ := json.Marshal(c.want); !bytes.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}
