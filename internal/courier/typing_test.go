package courier

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// typed returns a channel to a Gemini CLI that has only the fake screen.
func typed(t *testing.T, s *couriertest.Screen, open Opener, ways ...adapter.Way) (Channel, Facts, *couriertest.Watcher) {
	t.Helper()
	rules, ok, err := adapter.BuiltinRules(adapter.Gemini)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	f := Facts{
		Bundle: team.Bundle(t.TempDir()), Name: "gem", AgentID: "gem@demo", Generation: "g1", Log: slog.New(slog.DiscardHandler), hub: newHub(),
		Link: adapter.Link{Agent: adapter.Gemini, Ways: ways},
	}
	t.Cleanup(f.hub.close)
	f.look = newLooker(f, s, rules)
	w := couriertest.NewWatcher()
	ch, err := open(t.Context(), f, s, w.Report)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ch.Close)
	return ch, f, w
}

// An Enter that follows a paste too soon is lost: it is pressed again, and nothing is typed twice.
func TestEnterThatIsNotTaken(t *testing.T) {
	t.Parallel()
	s := &couriertest.Screen{Deaf: 1}
	ch, _, _ := typed(t, s, openTyping, adapter.WayTyping)
	if out := ch.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Held || s.Lines() != "" || s.Input != "text of a" {
		t.Fatalf("%+v, sent %q, and %q stands there", out, s.Lines(), s.Input)
	}
	out := ch.Deliver(t.Context(), couriertest.Mail("a", "b"))
	if out[0].State != team.Accepted || out[1].State != team.Held || s.Lines() != "text of a" || s.Input != "" {
		t.Errorf("%+v, sent %q, and %q stands there", out, s.Lines(), s.Input)
	}
}

// An Enter that had an effect which was not seen is not followed by another message.
func TestEnterThatIsSeenLate(t *testing.T) {
	t.Parallel()
	s := &couriertest.Screen{Deaf: 1}
	ch, _, _ := typed(t, s, openTyping, adapter.WayTyping)
	ch.Deliver(t.Context(), couriertest.Mail("a"))
	s.With(func() { s.Input = "" }) // now the screen shows it
	if out := ch.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Accepted || s.Lines() != "" {
		t.Errorf("%+v, sent %q", out, s.Lines())
	}
}

func TestTypingIsHeld(t *testing.T) {
	for _, c := range []struct {
		name, want string
		s          *couriertest.Screen
		sent       string
	}{
		{"half a line of a person's", "begun to type", &couriertest.Screen{Input: "half a li"}, ""},
		{"a dialog", "waits for permission", &couriertest.Screen{Dialog: true, Above: "Allow execution of [Shell]?\n● 1. Allow once\n"}, ""},
		{"a turn", "it is working", &couriertest.Screen{Above: "⠏ Thinking (esc to cancel, 3s)"}, ""},
		{"nothing known", "it is unknown", &couriertest.Screen{Dialog: true, Above: "$ "}, ""},
		{"a person reads back", "scrolls", &couriertest.Screen{Scrolls: true}, ""},
		{"a person types on behind it", "not seen to have arrived", &couriertest.Screen{OnPaste: func(s *couriertest.Screen) { s.Input += " and me" }}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before := c.s.Input
			ch, _, _ := typed(t, c.s, openTyping, adapter.WayTyping)
			out := ch.Deliver(t.Context(), couriertest.Mail("a"))
			if len(out) != 1 || out[0].State != team.Held || !strings.Contains(out[0].Reason, c.want) {
				t.Errorf("%+v, want held: %s", out, c.want)
			}
			if got := c.s.Lines(); got != c.sent {
				t.Errorf("sent %q", got)
			}
			if c.s.OnPaste == nil && c.s.Input != before {
				t.Errorf("the input box had %q and has %q", before, c.s.Input)
			}
		})
	}
}

// A person who stops scrolling makes no output: the mail is tried again.
func TestHeldForAReaderIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := &couriertest.Screen{Scrolls: true}
	ch, _, w := typed(t, s, openTyping, adapter.WayTyping)
	if out := ch.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Held {
		t.Fatalf("%+v", out)
	}
	s.With(func() { s.Scrolls = false })
	w.Wait(t, "another attempt", 0, func(o team.Observation) bool { return strings.Contains(o.Source, "tried again") })
	if out := ch.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Accepted || s.Lines() != "text of a" {
		t.Errorf("%+v, sent %q", out, s.Lines())
	}
}

// TestLooksSeldomAtADialog checks that a text whose Enter was not seen to be taken, and before which a
// dialog opened, is looked at once a minute until that is over, and sent with the next report then.
func TestLooksSeldomAtADialog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &couriertest.Screen{Deaf: 1}
		ch, _, w := typed(t, s, openTyping, adapter.WayTyping)
		again := func(want time.Duration) {
			t.Helper()
			began, mark := time.Now(), w.Mark()
			w.Wait(t, "another attempt", mark, func(o team.Observation) bool { return strings.Contains(o.Source, "tried again") })
			if took := time.Since(began); took != want {
				t.Errorf("tried again after %v, want %v", took, want)
			}
		}
		held := func() {
			t.Helper()
			if out := ch.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Held || s.Lines() != "" {
				t.Fatalf("%+v, sent %q", out, s.Lines())
			}
		}
		held()
		again(LookAgain)
		s.With(func() { s.Dialog, s.Above, s.Deaf = true, couriertest.GeminiDialog, 1 })
		held()
		again(lookSeldom)
		held()
		s.With(func() { s.Dialog, s.Above = false, "" })
		held() // a report of the watch; its Enter is lost as well
		again(LookAgain)
		if out := ch.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Accepted || s.Lines() != "text of a" {
			t.Errorf("%+v, sent %q", out, s.Lines())
		}
	})
}

func TestCloseEndsWhatIsLeftForLater(t *testing.T) {
	t.Parallel()
	s := &couriertest.Screen{Scrolls: true}
	ch, _, w := typed(t, s, openTyping, adapter.WayTyping)
	ch.Deliver(t.Context(), couriertest.Mail("a"))
	ch.Close() // goleak reports a timer's goroutine
	if w.Mark() != 0 {
		t.Errorf("%d were reported", w.Mark())
	}
}

// An agent that fetches its mail is not typed at, but its screen is read.
func TestPullLeavesMailAlone(t *testing.T) {
	t.Parallel()
	s := &couriertest.Screen{Above: "✦ done"}
	c := New(nil, nil)
	t.Cleanup(c.Close)
	w := couriertest.NewWatcher()
	home := team.Home{Dir: t.TempDir()}
	f := Facts{
		Layout: home.Team("demo"), Bundle: team.Bundle(t.TempDir()), Name: "gem", AgentID: "gem@demo", Generation: "g1",
		Link: adapter.Link{Agent: adapter.Gemini, Ways: []adapter.Way{adapter.WayPull}},
	}
	ch, err := c.Open(t.Context(), f, s, w.Report)
	if err != nil || ch == nil {
		t.Fatal(ch, err)
	}
	t.Cleanup(ch.Close)
	w.Wait(t, "idle", 0, couriertest.Is(team.Idle))
	if out := ch.Deliver(t.Context(), couriertest.Mail("a")); len(out) != 1 || out[0] != (team.Outcome{ID: "a"}) || s.Lines() != "" || s.Input != "" {
		t.Errorf("%+v, sent %q, in the box %q", out, s.Lines(), s.Input)
	}
}

// An Escape directly followed by a paste is another key for the program.
func TestEscapeStandsAlone(t *testing.T) {
	t.Parallel()
	s := &couriertest.Screen{}
	ch, _, _ := typed(t, s, openTyping, adapter.WayTyping)
	if err := ch.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := ch.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Accepted {
		t.Fatalf("%+v", out)
	}
	s.With(func() {
		if len(s.Keys) != 1 || s.Keys[0] != "Escape" {
			t.Errorf("keys %q", s.Keys)
		}
		if gap := s.PasteAt.Sub(s.KeyAt); gap < escapeAlone {
			t.Errorf("typed %s after Escape", gap)
		}
	})
}
