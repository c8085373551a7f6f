package hook

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A killed process loses what it was given, whatever hook the next process calls first; the mail
// is given again, with the remark that it may be known.
func TestKilledWithWhatItWasGiven(t *testing.T) {
	for _, version := range []string{"2.1.34", "2.1.112", "2.1.329"} {
		for _, event := range []string{"UserPromptSubmit", "PostToolUse", "Stop", "Wait"} {
			if event == "Wait" && version == "2.1.34" {
				continue
			}
			t.Run(version+" "+event, func(t *testing.T) {
				r := newRig(t)
				p := r.program()
				p.version(version)
				id := r.post("important")
				if got := r.call(event, p.input("")); !strings.Contains(text(t, got), "important") {
					t.Fatalf("answers %+v", got)
				}
				p.restarted()
				r.call("SessionStart", p.input(`,"source":"resume"`))
				r.want(id, team.Injected)
				got := text(t, r.call("UserPromptSubmit", p.input("")))
				if !strings.Contains(got, "important") || !strings.Contains(got, "may know") {
					t.Errorf("the next process gets %q", got)
				}
			})
		}
	}
}

// Gemini CLI calls the hook at the end of a turn also for a cancelled turn: the turn's last input
// was not answered.
func TestCancelledTurnIsNoEvidence(t *testing.T) {
	r := newRig(t)
	r.cli = adapter.Gemini
	call := func(event string, in map[string]any) string {
		in["session_id"] = "s1"
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		return text(t, r.call(event, string(b)))
	}
	id := r.post("important")
	got := call("AfterAgent", map[string]any{"prompt_response": "done"})
	call("BeforeAgent", map[string]any{"prompt": got})
	again := call("AfterAgent", map[string]any{"prompt_response": "done", "stop_hook_active": true})
	r.want(id, team.Held) // so that the agent is woken for it
	if again != "" {
		t.Errorf("a turn that was cancelled goes on with %q", again)
	}
	if got := call("BeforeAgent", map[string]any{"prompt": "There is mail from your team."}); !strings.Contains(got, "important") || !strings.Contains(got, "may know") {
		t.Errorf("not given again with the next prompt: %q", got)
	}
	r.want(id, team.Injected)
	call("AfterAgent", map[string]any{"prompt_response": "[no response text]"})
	r.want(id, team.Held)
	call("BeforeAgent", map[string]any{"prompt": "There is mail from your team."})
	call("AfterAgent", map[string]any{"prompt_response": "yes"})
	r.want(id, team.Accepted)

	id = r.post("before an error")
	p := r.program()
	call("BeforeAgent", map[string]any{"prompt": "There is mail from your team.", "transcript_path": p.file})
	p.write(map[string]any{"type": "error", "content": "[API Error: no]"})
	call("AfterAgent", map[string]any{"prompt_response": "[no response text]", "transcript_path": p.file})
	r.want(id, team.Accepted) // its model was asked

	// The error of an earlier turn says nothing about this one.
	id = r.post("after an error")
	call("BeforeAgent", map[string]any{"prompt": "There is mail from your team.", "transcript_path": p.file})
	call("AfterAgent", map[string]any{"prompt_response": "[no response text]", "transcript_path": p.file})
	r.want(id, team.Held)
}

// A program that is ended calls a hook before its model has answered, and Codex one for an
// interrupt: neither is evidence.
func TestEndOfTheSessionIsNoEvidence(t *testing.T) {
	for _, c := range []struct{ cli, version, gives, ends string }{
		{adapter.Claude, "2.1.34", "UserPromptSubmit", "SessionEnd"},
		{adapter.Gemini, "0.61.0", "BeforeAgent", "SessionEnd"},
		{adapter.Codex, "0.169.0", "UserPromptSubmit", "SessionEnd"},
		{adapter.Codex, "0.169.0", "PostToolUse", "Interrupt"},
	} {
		t.Run(c.cli+" "+c.ends, func(t *testing.T) {
			r := newRig(t)
			r.cli = c.cli
			p := r.program()
			p.version(c.version)
			id := r.post("important")
			if got := text(t, r.call(c.gives, p.input(""))); !strings.Contains(got, "important") {
				t.Fatalf("%s gives %q", c.gives, got)
			}
			r.call(c.ends, p.input(`,"reason":"other"`))
			r.want(id, team.Injected)
			p.restarted()
			if got := text(t, r.call(c.gives, p.input(""))); !strings.Contains(got, "important") || !strings.Contains(got, "may know") {
				t.Errorf("the next process gets %q", got)
			}
		})
	}
}

// A Claude Code that does not find its conversation calls the hook of a session's end: nothing was
// heard of the conversation then, and no turn has begun.
func TestEndOfTheSessionIsNoConversation(t *testing.T) {
	r := newRig(t)
	p := r.program()
	r.call("UserPromptSubmit", p.input(""))
	r.call("Stop", p.input(""))
	before, err := courier.ReadConversation(r.team.Layout.Bundle("ann"), r.ann.SessionKey)
	if err != nil || !before.Began || before.Working {
		t.Fatalf("%+v, %v", before, err)
	}
	p.restarted()
	r.call("SessionEnd", p.input(`,"reason":"other"`))
	if after, err := courier.ReadConversation(r.team.Layout.Bundle("ann"), r.ann.SessionKey); err != nil || after != before {
		t.Errorf("%+v, want %+v, %v", after, before, err)
	}
}

// A resumed conversation of Gemini CLI has what its model had answered, with entities for angle
// brackets. A text that it had not answered is given again.
func TestKilledAndInTheTranscriptOfGemini(t *testing.T) {
	for _, answered := range []bool{true, false} {
		t.Run(fmt.Sprintf("answered %t", answered), func(t *testing.T) {
			r := newRig(t)
			r.cli = adapter.Gemini
			p := r.program()
			p.version("0.61.0")
			id := r.post("important: if a < b")
			got := text(t, r.call("AfterTool", p.input("")))
			result := "Output: done\n\n<hook_context>" + strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(got) + "</hook_context>"
			p.write(map[string]any{"id": "1", "type": "gemini", "content": "", "toolCalls": []any{map[string]any{"id": "t", "result": result}}})
			p.write(map[string]any{"id": "2", "type": "user", "content": []any{map[string]any{"functionResponse": map[string]any{"response": map[string]any{"output": result}}}}})
			p.write(map[string]any{"id": "1", "type": "gemini", "content": ""}) // the call once more: no answer to its result
			want := team.Injected
			if answered {
				p.write(map[string]any{"id": "3", "type": "gemini", "content": "ok"})
				want = team.Accepted
			}
			p.restarted()
			again := text(t, r.call("BeforeAgent", p.input(`,"prompt":"You were started again"`)))
			if strings.Contains(again, "important") == answered {
				t.Errorf("answered %t, and the next process gets %q", answered, again)
			}
			r.want(id, want)
		})
	}
}

// A preview is not evidence, nor is what the program keeps of its hooks outside the conversation.
func TestPreviewIsNoEvidence(t *testing.T) {
	r := newRig(t)
	p := r.program()
	id := r.post("important " + strings.Repeat("x", 500) + " end")
	p.previews("PostToolUse", r.call("PostToolUse", p.input("")))
	r.call("PreToolUse", p.input(""))
	r.want(id, team.Injected)
	p.ends()
	if got := text(t, r.call("Stop", p.input(""))); !strings.Contains(got, "x end") {
		t.Errorf("the end of the turn gives %q", got)
	}
	r.want(id, team.Injected)
}

// A hook of the running program is not evidence before the transcript holds the text.
func TestNoPromotionBeforeTheTranscript(t *testing.T) {
	r := newRig(t)
	p := r.program()
	id := r.post("important")
	got := r.call("PostToolUse", p.input(""))
	for _, event := range []string{"PreToolUse", "PostToolUse", "Stop"} {
		if more := r.call(event, p.input("")); more != (adapter.HookReply{}) {
			t.Errorf("%s gives again: %+v", event, more)
		}
		r.want(id, team.Injected)
	}
	p.takes("PostToolUse", got)
	p.ends()
	r.call("Stop", p.input(""))
	r.want(id, team.Accepted)
}

// An interrupt drops what a hook has handed over before it is in the conversation.
func TestInterruptedWithWhatItWasGiven(t *testing.T) {
	r := newRig(t)
	p := r.program()
	id := r.post("important")
	r.call("PostToolUse", p.input(""))
	p.write(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "text", "text": "[Request interrupted by user for tool use]"}}}})
	if got := text(t, r.call("UserPromptSubmit", p.input(""))); !strings.Contains(got, "important") {
		t.Errorf("lost: %q", got)
	}
	r.want(id, team.Injected)
}

// No answer is longer than the version shows its model; messages stay whole and in order, and none
// is left behind.
func TestAnswersStayBelowTheCaps(t *testing.T) {
	caps := map[string]map[string]int{
		"2.1.34":  {"UserPromptSubmit": 10_000, "PostToolUse": 250_000, "Stop": 250_000},
		"2.1.112": {"UserPromptSubmit": 10_000, "PostToolUse": 10_000, "Stop": 10_000, "Wait": 250_000},
		"2.1.329": {"UserPromptSubmit": 10_000, "PostToolUse": 10_000, "Stop": 10_000, "Wait": 250_000},
		"2.1.200": {"UserPromptSubmit": 10_000, "PostToolUse": 10_000, "Stop": 10_000, "Wait": 250_000},
		"9.9.9":   {"UserPromptSubmit": 10_000, "PostToolUse": 10_000, "Stop": 10_000, "Wait": 250_000},
		"":        {"UserPromptSubmit": 10_000, "PostToolUse": 10_000, "Stop": 10_000},
	}
	sizes := []int{10, 3000, 4000, 5000, 9000, 9600, 20, 20_000, 100_000, 30, 40}
	for version, most := range caps {
		t.Run("version "+version, func(t *testing.T) {
			r := newRig(t)
			p := r.program()
			p.version(version)
			var want []string
			for i, n := range sizes {
				if version == "" && n > 7000 { // typed: no hook gives it whole in every version
					continue
				}
				body := fmt.Sprintf("M%02d %s %02dM", i, strings.Repeat("é\"\n", n/4), i)
				want = append(want, body)
				r.post(body)
			}
			all := ""
			events := []string{"UserPromptSubmit", "PostToolUse", "PostToolUse", "Stop", "UserPromptSubmit", "Stop", "Stop", "Stop", "Stop"}
			if most["Wait"] > 0 {
				events = append(events, "Wait", "Wait", "Wait", "Stop")
			}
			for _, event := range events {
				if event == "Wait" && len(waiting(r)) == 0 {
					continue
				}
				got := r.call(event, p.input(""))
				if s := text(t, got); s != "" {
					limit := most[event]
					if n := len([]rune(got.Stdout)); n > limit {
						t.Errorf("%s answers %d characters, %d are shown", event, n, limit)
					}
					all += s
					p.takes(event, got)
				}
				p.ends()
			}
			at := 0
			for i, body := range want {
				n := strings.Index(all[at:], body)
				if n < 0 {
					t.Fatalf("message %d is not whole, or out of order", i)
				}
				at += n
			}
			r.call("Stop", p.input(""))
			if left := waiting(r); len(left) > 0 {
				t.Errorf("left: %d", len(left))
			}
		})
	}
}

func waiting(r *rig) []ledger.Outgoing {
	r.t.Helper()
	out, err := r.team.Ledger.Waiting(r.t.Context(), r.ann.SessionKey)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// Version 2.1.329 lets a hook continue a turn eight times; mail after that goes by the waiting
// hook.
func TestNoMoreEndsThanTheProgramKeeps(t *testing.T) {
	r := newRig(t)
	p := r.program()
	gave := 0
	for range 12 {
		r.post("more")
		if got := r.call("Stop", p.input("")); got != (adapter.HookReply{}) {
			p.takes("Stop", got)
			gave++
			continue
		}
		break
	}
	if gave != 7 {
		t.Errorf("kept %d ends", gave)
	}
	p.takes("Wait", r.call("Wait", p.input("")))
	r.post("next")
	if got := text(t, r.call("Stop", p.input(""))); !strings.Contains(got, "next") {
		t.Errorf("the end of the next turn gives %q", got)
	}
}

// The agent is notified once of a message that is too long for the middle of a turn.
func TestTooLongIsToldOnce(t *testing.T) {
	r := newRig(t)
	p := r.program()
	id := r.post(strings.Repeat("long ", 3000))
	r.post("short")
	got := text(t, r.call("PostToolUse", p.input("")))
	if !strings.Contains(got, id) || !strings.Contains(got, "InboxRead") || strings.Contains(got, "long long") {
		t.Errorf("told %q", got)
	}
	if got := r.call("PostToolUse", p.input("")); got != (adapter.HookReply{}) {
		t.Errorf("told twice: %+v", got)
	}
	r.want(id, team.Mailed)
	if got := r.call("Stop", p.input("")); got != (adapter.HookReply{}) {
		t.Errorf("the end of the turn gives %+v", got)
	}
	if got := text(t, r.call("Wait", p.input(""))); !strings.Contains(got, "long long") || strings.Index(got, "long long") > strings.Index(got, "short") {
		t.Errorf("the hook that waits gives %q", got[:min(len(got), 100)])
	}
}

// Two hooks of one boundary give in order: the second waits for the messages of the first.
func TestHooksOfOneBoundaryGiveInOrder(t *testing.T) {
	r := newRig(t)
	p := r.program()
	first := r.post("first")
	got := r.call("PostToolUse", p.input(""))
	second := r.post("second")
	if got := r.call("PostToolUse", p.input("")); got != (adapter.HookReply{}) {
		t.Errorf("a parallel hook gives %+v", got)
	}
	r.want(second, team.Mailed)
	p.takes("PostToolUse", got)
	p.answers()
	if got := text(t, r.call("PostToolUse", p.input(""))); !strings.Contains(got, "second") || strings.Contains(got, "first") {
		t.Errorf("the next boundary gives %q", got)
	}
	r.want(first, team.Accepted)
}

// Mail is not given to a sub-agent, since the agent's own model would never see it.
func TestHelpersGetNoMail(t *testing.T) {
	r := newRig(t)
	p := r.program()
	id := r.post("for ann")
	if got := r.call("PostToolUse", p.input(`,"agent_id":"a1","agent_type":"Explore"`)); got != (adapter.HookReply{}) {
		t.Errorf("a helper gets %+v", got)
	}
	r.want(id, team.Mailed)
}

// age makes the only message that was handed over older.
func (r *rig) age(by time.Duration) {
	r.t.Helper()
	g := given{}
	file := filepath.Join(string(r.team.Layout.Bundle("ann")), "given.json")
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &g)
	}
	if err != nil || len(g.Handed) != 1 {
		r.t.Fatalf("given %+v, %v", g, err)
	}
	g.Handed[0].At = time.Now().Add(-by)
	if b, err = json.Marshal(g); err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// An answer that the program never takes is given again and never counts as accepted, however long
// that takes.
func TestNotTakenIsGivenAgain(t *testing.T) {
	r := newRig(t)
	p := r.program()
	id := r.post("important")
	r.call("Stop", p.input(""))
	r.age(2 * patience)
	if got := text(t, r.call("UserPromptSubmit", p.input(""))); !strings.Contains(got, "important") {
		t.Errorf("gives %q", got)
	}
	r.want(id, team.Injected)
}

// A message in the program's queue may still arrive; a message that left the queue without
// reaching the conversation does not arrive once the turn was interrupted.
func TestQueuedAndInterrupted(t *testing.T) {
	r := newRig(t)
	p := r.program()
	id := r.post("important")
	got := r.call("Wait", p.input(""))
	p.write(map[string]any{"type": "queue-operation", "operation": "enqueue", "content": text(t, got)})
	if got := r.call("UserPromptSubmit", p.input("")); got != (adapter.HookReply{}) {
		t.Errorf("given while it is queued: %+v", got)
	}
	r.want(id, team.Injected)
	p.write(map[string]any{"type": "queue-operation", "operation": "dequeue"})
	p.write(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": "[Request interrupted by user]"}})
	if got := text(t, r.call("UserPromptSubmit", p.input(""))); !strings.Contains(got, "important") {
		t.Errorf("lost: %q", got)
	}
}

// The prompt of a turn begun by mail gets no later mail: the program would insert it before the
// prompt.
func TestPromptOfMailGetsNoMore(t *testing.T) {
	r := newRig(t)
	p := r.program()
	r.post("first")
	got := r.call("Wait", p.input(""))
	r.post("second")
	prompt := "<task-notification><summary>mail from your team</summary></task-notification> " + text(t, got)
	p.write(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": prompt}})
	quoted, err := json.Marshal(prompt)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.call("UserPromptSubmit", p.input(`,"prompt":`+string(quoted))); got != (adapter.HookReply{}) {
		t.Errorf("gives %+v", got)
	}
	if got := text(t, r.call("Stop", p.input(""))); !strings.Contains(got, "second") {
		t.Errorf("gives %q", got)
	}
}

// A message in the program's queue keeps later mail from arriving first, however long the program
// takes.
func TestQueuedHoldsUpLaterMail(t *testing.T) {
	r := newRig(t)
	p := r.program()
	r.post("first")
	got := r.call("Wait", p.input(""))
	p.write(map[string]any{"type": "queue-operation", "operation": "enqueue", "content": text(t, got)})
	r.age(2 * time.Minute)
	r.post("second")
	if got := r.call("Stop", p.input("")); got != (adapter.HookReply{}) {
		t.Errorf("what came later overtakes: %+v", got)
	}
	p.write(map[string]any{"type": "queue-operation", "operation": "dequeue"})
	p.write(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": text(t, got)}})
	if got := text(t, r.call("Stop", p.input(""))); !strings.Contains(got, "second") || strings.Contains(got, "first") {
		t.Errorf("given: %q", got)
	}
}

// What Gemini CLI is given at the end of a turn becomes the prompt of the next one: that prompt
// holds the message, so it is not given again.
func TestPromptIsEvidence(t *testing.T) {
	r := newRig(t)
	r.cli = adapter.Gemini
	id := r.post("a word")
	got := r.call("AfterAgent", `{"session_id":"s1","prompt_response":"done"}`)
	var out struct{ Reason string }
	if err := json.Unmarshal([]byte(got.Stdout), &out); err != nil || !strings.Contains(out.Reason, "a word") {
		t.Fatalf("%v: %q", err, got.Stdout)
	}
	other, err := json.Marshal(map[string]string{"session_id": "s1", "prompt": "a word"}) // typed by a person
	if err != nil {
		t.Fatal(err)
	}
	prompt, err := json.Marshal(map[string]string{"session_id": "s1", "prompt": out.Reason})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.call("BeforeAgent", string(prompt)); got.Stdout != "" {
		t.Errorf("given again: %q", got.Stdout)
	}
	r.want(id, team.Injected)
	if got := r.call("BeforeTool", `{"session_id":"s1"}`); got.Stdout != "" {
		t.Errorf("given again: %q", got.Stdout)
	}
	r.want(id, team.Accepted)
	id = r.post("another word")
	r.call("AfterAgent", `{"session_id":"s1","prompt_response":"done"}`)
	if got := r.call("BeforeAgent", string(other)); !strings.Contains(got.Stdout, "another word") {
		t.Errorf("not given again with another prompt: %q", got.Stdout)
	}
	r.want(id, team.Injected)
}
