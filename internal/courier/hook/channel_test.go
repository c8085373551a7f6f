package hook

import (
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// prepared completes the facts of a generation.
func prepared(t *testing.T, f courier.Facts, s courier.Screen) courier.Facts {
	t.Helper()
	c := courier.New(nil, nil)
	t.Cleanup(c.Close)
	f, err := c.Prepare(f, s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// woken returns a channel to a Gemini CLI on a screen, whose hooks run.
func woken(t *testing.T, s courier.Screen) (*channel, courier.Facts, *couriertest.Watcher) {
	t.Helper()
	f := prepared(t, courier.Facts{
		Layout: team.Home{Dir: t.TempDir()}.Team("demo"), Bundle: team.Bundle(t.TempDir()), Name: "gem", AgentID: "gem@demo", Generation: "g1",
		Link: adapter.Link{Agent: adapter.Gemini, Ways: []adapter.Way{adapter.WayHooks, adapter.WayTyping}},
	}, s)
	if err := courier.WriteSeen(f.Bundle, courier.SeenFile{Generation: f.Generation}); err != nil {
		t.Fatal(err)
	}
	w := couriertest.NewWatcher()
	ch, err := Open(t.Context(), f, s, w.Report)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ch.Close)
	return ch.(*channel), f, w
}

// An idle agent whose hooks fetch the mail is woken once for waiting mail, and again at once for
// mail that arrives after the fetch.
func TestWakesAgainForNewMail(t *testing.T) {
	t.Parallel()
	s := &couriertest.Screen{}
	ch, _, _ := woken(t, s)
	ch.Deliver(t.Context(), couriertest.Mail("a"))
	ch.Deliver(t.Context(), couriertest.Mail("a", "b")) // a has not been fetched: that wake-up is pending
	if got := s.Lines(); got != adapter.WakeText {
		t.Fatalf("typed %q", got)
	}
	ch.Deliver(t.Context(), couriertest.Mail("b")) // a was fetched, and b came too late for that
	if got := s.Lines(); got != adapter.WakeText+"|"+adapter.WakeText {
		t.Fatalf("typed %q: what came after a wake-up waits for nothing", got)
	}
}

// A wake-up that was typed but could not be sent is sent by the next attempt.
func TestWakeThatStandsThereIsSent(t *testing.T) {
	t.Parallel()
	s := &couriertest.Screen{}
	s.OnPaste = func(s *couriertest.Screen) { s.Scrolls = true } // a person begins to scroll at that moment
	ch, _, _ := woken(t, s)
	if out := ch.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Held || s.Lines() != "" {
		t.Fatalf("%+v, sent %q", out, s.Lines())
	}
	s.With(func() { s.Scrolls = false })
	ch.Deliver(t.Context(), couriertest.Mail("a"))
	if got := s.Lines(); got != adapter.WakeText {
		t.Fatalf("sent %q", got)
	}
}

// A wake-up that a slow program shows only after it was typed again is in the box twice: it still
// counts as ours and is sent, unlike text that a person added.
func TestWakeThatStandsThereTwiceIsSent(t *testing.T) {
	t.Parallel()
	twice := adapter.WakeText + adapter.WakeText
	s := &couriertest.Screen{Input: twice}
	ch, _, _ := woken(t, s)
	ch.Deliver(t.Context(), couriertest.Mail("a"))
	if got := s.Lines(); got != twice {
		t.Fatalf("sent %q", got)
	}
	s = &couriertest.Screen{Input: twice + "no, wait"}
	ch, _, _ = woken(t, s)
	if out := ch.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Held || s.Lines() != "" {
		t.Fatalf("%+v, sent %q", out, s.Lines())
	}
}

// The Enter of a wake-up that follows its paste too soon is lost: it is pressed again, and nothing is
// typed twice.
func TestEnterOfAWakeUpThatIsNotTaken(t *testing.T) {
	t.Parallel()
	s := &couriertest.Screen{Deaf: 1}
	ch, _, _ := woken(t, s)
	ch.Deliver(t.Context(), couriertest.Mail("a"))
	if s.Lines() != "" || s.Input != adapter.WakeText {
		t.Fatalf("sent %q, and %q stands there", s.Lines(), s.Input)
	}
	ch.Deliver(t.Context(), couriertest.Mail("a", "b"))
	if s.Lines() != adapter.WakeText || s.Input != "" {
		t.Errorf("sent %q, and %q stands there", s.Lines(), s.Input)
	}
}

// No supervisor types a wake-up a second time that a slow program has not read yet.
func TestNoWakeUpIsTypedTwice(t *testing.T) {
	t.Parallel()
	s := &couriertest.Screen{Slow: true}
	ch, f, _ := woken(t, s)
	couriertest.TypedOnce(t, s, adapter.WakeText, ch, func() couriertest.Channel {
		again, err := Open(t.Context(), f, s, couriertest.NewWatcher().Report)
		if err != nil {
			t.Fatal(err)
		}
		return again
	})
}

const geminiAsks = `{"session_id":"c1","timestamp":"2026-11-21T14:54:14Z","notification_type":"ToolPermission","message":"m",
	"details":{"type":"exec","title":"Confirm Shell Command","command":"touch asked && touch again"}}`

// A key answers a dialog only while the requesting dialog is open.
func TestAnswerByKey(t *testing.T) {
	seen := adapter.HookSees(adapter.Gemini, "Notification", adapter.ParseHook([]byte(geminiAsks)), false, time.Now())
	if seen.Ask == nil || seen.Ask.Tool != "run_shell_command" || seen.Ask.Description != "touch asked && touch again" {
		t.Fatalf("asked: %+v", seen.Ask)
	}
	old := seen
	old.At = seen.At.Add(-2 * drawWithin)
	other := seen
	other.Ask = nil
	closes := func(s *couriertest.Screen) { s.Above, s.Dialog = "✦ done", false }
	for _, c := range []struct {
		name, keys string
		allow      bool
		screen     *couriertest.Screen
		last       team.Observation
		gen        string
		want       team.Code
	}{
		{name: "allowed", keys: "1", allow: true, screen: &couriertest.Screen{Dialog: true, Above: couriertest.GeminiDialog, OnKey: closes}, last: seen, gen: "g1"},
		{name: "refused", keys: "3", screen: &couriertest.Screen{Dialog: true, Above: couriertest.GeminiDialog, OnKey: closes}, last: seen, gen: "g1"},
		{name: "another dialog", allow: true, last: seen, gen: "g1", want: team.CodeUnavailable,
			screen: &couriertest.Screen{Dialog: true, Above: strings.ReplaceAll(couriertest.GeminiDialog, "touch asked", "rm -rf /")}},
		{name: "no dialog yet", allow: true, last: seen, gen: "g1", want: team.CodeUnavailable, screen: &couriertest.Screen{Above: "⠏ (esc to cancel, 1s)"}},
		{name: "not drawn yet", allow: true, last: seen, gen: "g1", want: team.CodeUnavailable, screen: &couriertest.Screen{}},
		{name: "the dialog is over", allow: true, last: old, gen: "g1", want: team.CodeNotFound, screen: &couriertest.Screen{}},
		{name: "a hook was called since", allow: true, last: other, gen: "g1", want: team.CodeNotFound, screen: &couriertest.Screen{Dialog: true, Above: couriertest.GeminiDialog}},
		{name: "an earlier process", allow: true, last: seen, gen: "g0", want: team.CodeNotFound, screen: &couriertest.Screen{Dialog: true, Above: couriertest.GeminiDialog}},
		{name: "the key is not taken", keys: "1", allow: true, last: seen, gen: "g1", want: team.CodeUnavailable, screen: &couriertest.Screen{Dialog: true, Above: couriertest.GeminiDialog}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ch, f, _ := woken(t, c.screen)
			if err := courier.WriteSeen(f.Bundle, courier.SeenFile{Generation: c.gen, Seen: c.last}); err != nil {
				t.Fatal(err)
			}
			err := ch.Answer(t.Context(), team.Reply{ID: seen.Ask.ID, For: team.WaitPermission, Allow: c.allow})
			if got := strings.Join(c.screen.Keys, ""); got != c.keys {
				t.Errorf("pressed %q, want %q", got, c.keys)
			}
			if c.want == "" && err != nil || c.want != "" && !team.IsCode(err, c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
