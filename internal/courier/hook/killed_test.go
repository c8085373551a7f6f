package hook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/team"
)

// line adds an entry of the conversation's tree to the transcript.
func (p *program) line(kind, id, parent string, more map[string]any) {
	more["type"], more["uuid"], more["parentUuid"] = kind, id, parent
	p.write(more)
}

// A killed process loses a message in the prompt of its turn that it has not recorded.
func TestKilledWithItInThePrompt(t *testing.T) {
	for _, c := range []struct{ cli, version, gives, prompts string }{
		{adapter.Claude, "2.1.34", "Stop", "UserPromptSubmit"},
		{adapter.Claude, "2.1.112", "Wait", "UserPromptSubmit"},
		{adapter.Claude, "2.1.329", "Wait", "UserPromptSubmit"},
		{adapter.Gemini, "0.61.0", "AfterAgent", "BeforeAgent"},
	} {
		t.Run(c.cli+" "+c.version, func(t *testing.T) {
			r := newRig(t)
			r.cli = c.cli
			p := r.program()
			p.version(c.version)
			id := r.post("important")
			prompt, err := json.Marshal(text(t, r.call(c.gives, p.input(""))))
			if err != nil {
				t.Fatal(err)
			}
			if got := r.call(c.prompts, p.input(`,"prompt":`+string(prompt))); got != (adapter.HookReply{}) {
				t.Errorf("given twice: %+v", got)
			}
			r.want(id, team.Injected)
			p.restarted()
			r.call("SessionStart", p.input(`,"source":"resume"`))
			r.want(id, team.Injected)
			if got := text(t, r.call(c.prompts, p.input(""))); !strings.Contains(got, "important") || !strings.Contains(got, "may know") {
				t.Errorf("the next process gets %q", got)
			}
		})
	}
}

// A process of 2.1.34 or 2.1.112 that is killed before its model has answered is resumed without what a
// hook had added to the last input, though the transcript has it, and goes on from that input with an
// answer of its own.
func TestKilledBeforeTheModelHasAnswered(t *testing.T) {
	r := newRig(t)
	p := r.program()
	p.version("2.1.112")
	message := func(id, model, text string) map[string]any {
		return map[string]any{"message": map[string]any{"id": id, "model": model, "stop_reason": "end_turn", "content": []any{map[string]any{"type": "text", "text": text}}}}
	}
	id := r.post("important")
	p.line("user", "prompt", "", message("", "", "go on"))
	p.line("attachment", "context", "prompt", map[string]any{"attachment": map[string]any{
		"type": "hook_additional_context", "content": []string{text(t, r.call("UserPromptSubmit", p.input("")))}}})
	if got := r.call("PreToolUse", p.input("")); got != (adapter.HookReply{}) {
		t.Errorf("the same process gets %+v", got)
	}
	r.want(id, team.Injected)
	p.restarted()
	p.line("assistant", "own", "prompt", message("m1", "<synthetic>", "No response requested."))
	p.line("user", "next", "own", message("", "", "go on"))
	p.line("assistant", "answer", "next", message("m2", "claude", "done"))
	if got := text(t, r.call("UserPromptSubmit", p.input(""))); !strings.Contains(got, "important") || !strings.Contains(got, "may know") {
		t.Errorf("the next process gets %q", got)
	}
	r.want(id, team.Injected)
}

// TestKilledAndResumedWithIt: what hooks have added is in the conversation of the process of 2.1.329
// that resumes it. It is reminded of that once, and is given it again only if its next answer does not
// follow it.
func TestKilledAndResumedWithIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event, base string // the hook that gives it, and the line that it is added to
		keeps       bool
	}{
		{"UserPromptSubmit", "prompt", true},
		{"UserPromptSubmit", "prompt", false},
		{"PostToolUse", "result", true},
		{"Stop", "first", true},
		{"Stop", "first", false},
	} {
		t.Run(fmt.Sprint(c.event, " ", c.keeps), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := r.program()
			p.version("2.1.329")
			message := func(id, text string) map[string]any {
				return map[string]any{"message": map[string]any{"id": id, "stop_reason": "end_turn", "content": []any{map[string]any{"type": "text", "text": text}}}}
			}
			p.line("user", "prompt", "", message("", "go on"))
			if c.event != "UserPromptSubmit" {
				p.line("assistant", "first", "prompt", message("m1", "done"))
			}
			if c.event == "PostToolUse" {
				p.line("user", "result", "first", message("", "the result"))
			}
			id := r.post("important")
			p.line("attachment", "context", c.base, map[string]any{"attachment": map[string]any{
				"type": "hook_additional_context", "hookEvent": c.event, "content": []string{text(t, r.call(c.event, p.input("")))}}})
			p.restarted()
			r.call("SessionStart", p.input(`,"source":"resume"`))
			talk, err := courier.ReadConversation(r.team.Layout.Bundle("ann"), r.ann.SessionKey)
			if talk.Working = false; err == nil { // nothing has told of the end of the turn that was killed
				err = courier.WriteConversation(r.team.Layout.Bundle("ann"), talk)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := text(t, r.call("Wait", p.input(""))); !strings.Contains(got, remindText) || strings.Contains(got, "important") {
				t.Errorf("the waiting hook says %q", got)
			}
			if got := r.call("UserPromptSubmit", p.input("")); got != (adapter.HookReply{}) {
				t.Errorf("given again: %+v", got)
			}
			r.want(id, team.Injected)
			follows := map[bool]string{true: "context", false: c.base}[c.keeps]
			if c.event != "Stop" {
				own := message("own", "No response requested.")
				own["message"].(map[string]any)["model"], own["version"] = "<synthetic>", "2.1.329"
				p.line("assistant", "own", follows, own)
				follows = "own"
			}
			p.line("user", "next", follows, message("", "reminded"))
			p.line("assistant", "second", "next", message("m2", "done"))
			if c.keeps {
				if got := r.call("Stop", p.input("")); got != (adapter.HookReply{}) {
					t.Errorf("given again: %+v", got)
				}
				r.want(id, team.Accepted)
				return
			}
			p.restarted() // else it has 30 s to come
			if got := text(t, r.call("UserPromptSubmit", p.input(""))); !strings.Contains(got, "important") || !strings.Contains(got, "may know") {
				t.Errorf("what the conversation lacks: %q", got)
			}
		})
	}
}

// The resumed process has what the transcript of its conversation holds whole and its model has
// answered.
func TestKilledAndInTheTranscript(t *testing.T) {
	r := newRig(t)
	p := r.program()
	id := r.post("important")
	p.takes("PostToolUse", r.call("PostToolUse", p.input("")))
	p.answers()
	p.restarted()
	if got := r.call("UserPromptSubmit", p.input("")); got != (adapter.HookReply{}) {
		t.Errorf("given twice: %+v", got)
	}
	r.want(id, team.Accepted)
	d, err := r.team.Ledger.Delivery(t.Context(), id, "ann")
	if err != nil || !strings.Contains(d.Evidence, "transcript of c1") || !strings.Contains(d.Evidence, "generation") {
		t.Errorf("evidence %q, %v", d.Evidence, err)
	}
}
