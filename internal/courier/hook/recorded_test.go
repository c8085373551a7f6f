package hook

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
)

// framed returns mail that a hook has handed over, with its frame.
func framed(id, text string) team.Mail {
	return team.Mail{ID: id, Again: true, Text: "a notice\n\n<teammate-message message_id=\"" + id + "\">\n" + text + "\n</teammate-message>"}
}

// recording returns a channel to a version of Claude Code, and a function that writes its
// transcript.
func recording(t *testing.T, version string) (h *channel, s *couriertest.Screen, write func(entries ...any)) {
	t.Helper()
	s = &couriertest.Screen{}
	h, f, _ := woken(t, s)
	h.f.Link.Agent, h.f.Link.Version, h.f.Session = adapter.Claude, version, "s1"
	file := filepath.Join(t.TempDir(), "transcript.jsonl")
	if err := courier.WriteConversation(f.Bundle, courier.Conversation{Session: "s1", ID: "c1", Transcript: file}); err != nil {
		t.Fatal(err)
	}
	return h, s, func(entries ...any) {
		t.Helper()
		var data []byte
		for _, e := range entries {
			line, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			data = append(append(data, line...), '\n')
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A channel of hooks reads the transcript on request: a whole message that the model has answered is
// accepted although no hook is called, one that it has not answered and one in the program's queue
// are pending, and a part of a message does not count. A process that was started since does not
// have what the model had not answered.
func TestHooksAreAsked(t *testing.T) {
	t.Parallel()
	h, s, write := recording(t, "2.1.112")
	held, queued, cut := framed("m1", "all of it"), framed("m2", "in the queue"), framed("m3", "a long text, of which a part is shown")
	noted, gone := framed("m4", "not answered"), framed("m5", "of the process before")
	add := func(text string) any {
		return map[string]any{"type": "attachment", "attachment": map[string]any{"type": "hook_additional_context", "content": []string{text}}}
	}
	if err := courier.WriteJSON(h.f.Bundle, "given.json", map[string]any{"handed": []map[string]string{
		{"id": "m4", "generation": h.f.Generation}, {"id": "m5", "generation": "before"},
	}}); err != nil {
		t.Fatal(err)
	}
	write(
		add(held.Text),
		map[string]any{"type": "assistant", "message": map[string]any{"id": "a1"}},
		add(noted.Text), add(gone.Text),
		map[string]any{"type": "queue-operation", "operation": "enqueue", "content": queued.Text},
		add(cut.Text[:len(cut.Text)-30]),
	)
	out := h.Deliver(t.Context(), []team.Mail{cut, held, queued, noted, gone})
	if len(out) != 5 || out[3].State != "" || !out[3].Pending || out[4].State != "" || out[4].Pending || out[0].ID != "m3" || out[0].State != "" || out[0].Pending ||
		out[1].ID != "m1" || out[1].State != team.Accepted || out[1].Evidence != "the transcript of c1 holds it" ||
		out[2].ID != "m2" || out[2].State != "" || !out[2].Pending {
		t.Errorf("%+v", out)
	}
	if s.Lines() != "" {
		t.Errorf("typed %q", s.Lines())
	}
}

// Mail given to a program without such a transcript is pending while its turn runs. An agent that
// is at rest without a hook's report has lost it, as after an interrupt: the agent is woken for
// it.
func TestLostWithoutATranscript(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2.1.34", ""} {
		h, s, write := recording(t, version)
		mail := []team.Mail{framed("m1", "in a turn that is interrupted")}
		write(map[string]any{"type": "attachment", "attachment": map[string]any{"type": "hook_additional_context", "content": []string{mail[0].Text}}})
		h.opened = time.Now().Add(-waiterBack)
		s.With(func() { s.Above = "⠏ Thinking... (esc to cancel, 3s)" })
		if out := h.Deliver(t.Context(), mail); len(out) != 1 || out[0].State != "" || !out[0].Pending || s.Lines() != "" {
			t.Errorf("at work: %+v, typed %q", out, s.Lines())
		}
		s.With(func() { s.Above = "" })
		if out := h.Deliver(t.Context(), mail); len(out) != 1 || out[0].State != "" || out[0].Pending || s.Lines() != adapter.WakeText {
			t.Errorf("at rest: %+v, typed %q", out, s.Lines())
		}
	}
}

// Given mail that the transcript lacks would stay lost if the agent is at rest and its waiting
// hook was killed: the agent is woken for it, once.
func TestWokenForLostMail(t *testing.T) {
	t.Parallel()
	h, s, write := recording(t, "2.1.329")
	write()
	lost := []team.Mail{framed("m1", "lost")}
	lock, err := filelock.Lock(t.Context(), waitLock(h.f.Bundle))
	if err != nil {
		t.Fatal(err)
	}
	h.Deliver(t.Context(), lost)
	h.alone = time.Now().Add(-waiterBack)
	h.Deliver(t.Context(), lost)
	if s.Lines() != "" {
		t.Fatalf("a hook waits: typed %q", s.Lines())
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if h.Deliver(t.Context(), lost); s.Lines() != "" {
		t.Fatalf("a hook that waits may come back: typed %q", s.Lines())
	}
	for range 3 {
		h.alone = time.Now().Add(-waiterBack)
		if out := h.Deliver(t.Context(), lost); len(out) != 1 || out[0].State != "" {
			t.Errorf("%+v", out)
		}
		h.woken = h.woken.Add(-wakeAgain)
	}
	if s.Lines() != adapter.WakeText {
		t.Errorf("typed %q", s.Lines())
	}
}

// Mail that the conversation has and the model has not answered wakes an agent at rest once: an
// interrupt has ended the turn, the model has failed, or the process that had it was killed and its
// conversation resumed.
func TestWokenForMailThatWasNotAnswered(t *testing.T) {
	t.Parallel()
	for name, generation := range map[string]string{"the same process": "", "resumed": "before"} {
		h, s, write := recording(t, "2.1.329")
		mail := []team.Mail{framed("m1", "in a turn that was broken off")}
		if err := courier.WriteJSON(h.f.Bundle, "given.json", map[string]any{"handed": []map[string]string{
			{"id": "m1", "generation": cmp.Or(generation, h.f.Generation), "conversation": "c1"},
		}}); err != nil {
			t.Fatal(err)
		}
		write(map[string]any{"type": "attachment", "attachment": map[string]any{"type": "hook_additional_context", "content": []string{mail[0].Text}}})
		for range 3 {
			h.alone = time.Now().Add(-waiterBack)
			if out := h.Deliver(t.Context(), mail); len(out) != 1 || out[0].State != "" || !out[0].Pending {
				t.Errorf("%s: %+v", name, out)
			}
			h.woken, h.called = h.woken.Add(-wakeAgain), time.Time{} // a hook has run since
		}
		if s.Lines() != adapter.WakeText {
			t.Errorf("%s: typed %q", name, s.Lines())
		}
	}
}
