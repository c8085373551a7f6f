package courier

import (
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// The text of a limit names a time of day and stays on the screen after that: it keeps its first
// meaning, also for the next supervisor.
func TestLimitMeansItsFirstHour(t *testing.T) {
	t.Parallel()
	s := &couriertest.Screen{}
	_, f, _ := typed(t, s, openTyping, adapter.WayTyping)
	clock := func(day, hour, minute int) time.Time { return time.Date(2026, 11, day, hour, minute, 0, 0, time.UTC) }
	const words = "✕ Usage limit reached for x.\n  Access resets at 3:00 PM UTC.\n"
	l := f.look
	for _, c := range []struct {
		what  string
		again bool // another supervisor
		above string
		at    time.Time
		want  team.Activity
		until time.Time
	}{
		{"it comes", false, "> go\n" + words, clock(21, 14, 0), team.Limited, clock(21, 15, 0)},
		{"it stands there", false, "> go\n" + words, clock(21, 14, 59), team.Limited, clock(21, 15, 0)},
		{"another supervisor", true, "> go\n" + words, clock(21, 14, 59), team.Limited, clock(21, 15, 0)},
		{"it is over", false, "> go\n" + words, clock(21, 15, 0), team.Idle, time.Time{}},
		{"over, to another supervisor", true, "> go\n" + words, clock(21, 15, 1), team.Idle, time.Time{}},
		{"a menu is shown and closed", false, "> go\n? help", clock(21, 15, 2), team.Idle, time.Time{}},
		{"and it stands there again", false, "> go\n" + words, clock(21, 15, 3), team.Idle, time.Time{}},
		{"once more", false, "> go\n" + words + "> on\n" + words, clock(21, 15, 4), team.Limited, clock(22, 15, 0)},
		{"it works", false, "> go on\n ⠏ Thinking… (esc to cancel, 3s)", clock(22, 15, 5), team.Working, time.Time{}},
		{"the same words another day", false, "> go on\n" + words, clock(23, 14, 0), team.Limited, clock(23, 15, 0)},
	} {
		if c.again {
			rules := l.rules
			l = newLooker(f, s, rules)
		}
		s.With(func() { s.Above = c.above })
		screen, err := s.Capture(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		seen, past := l.at(screen, c.at)
		if seen.Activity != c.want || !seen.Until.Equal(c.until) {
			t.Errorf("%s: %s until %s, want %s until %s", c.what, seen.Activity, seen.Until, c.want, c.until)
		}
		if past.Activity == team.Limited || past.HasInput != true {
			t.Errorf("%s: beside it %s", c.what, past.Activity)
		}
	}
}

// A program that resumes a conversation shows the text of a limit again, which keeps its first
// meaning. In another conversation the same text is another limit.
func TestLimitInResumedConversation(t *testing.T) {
	t.Parallel()
	clock := func(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		what    string
		first   adapter.Link // of the process that met the limit
		learned string       // the conversation that its program has reported
		then    adapter.Link // of the next process
		again   bool         // it is another limit
	}{
		{"its id was chosen", adapter.Link{Conversation: "c1"}, "", adapter.Link{Conversation: "c1", Resumed: true}, false},
		{"its id was learned", adapter.Link{}, "c1", adapter.Link{Conversation: "c1", Resumed: true}, false},
		{"it went on in another one", adapter.Link{Conversation: "c1"}, "c2", adapter.Link{Conversation: "c2", Resumed: true}, false},
		{"another one is resumed", adapter.Link{Conversation: "c1"}, "", adapter.Link{Conversation: "c2", Resumed: true}, true},
		{"a new one", adapter.Link{Conversation: "c1"}, "", adapter.Link{Conversation: "c2"}, true},
		{"none is known", adapter.Link{}, "", adapter.Link{Resumed: true}, true},
	} {
		s := &couriertest.Screen{Above: "> go\n✕ Usage limit reached for x.\n  Access resets at 3:00 PM UTC.\n"}
		screen, err := s.Capture(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		_, f, _ := typed(t, &couriertest.Screen{}, openTyping, adapter.WayTyping)
		if c.learned != "" {
			if err = WriteConversation(f.Bundle, Conversation{Session: f.Session, Generation: f.Generation, ID: c.learned}); err != nil {
				t.Fatal(err)
			}
		}
		rules := f.look.rules
		f.Link = c.first
		if seen, _ := newLooker(f, s, rules).at(screen, clock(21, 14)); seen.Activity != team.Limited {
			t.Fatalf("%s: %+v", c.what, seen)
		}
		f.Generation, f.Link = "g2", c.then
		l := newLooker(f, s, rules)
		seen, _ := l.at(screen, clock(21, 16))
		if again := seen.Activity == team.Limited; again != c.again || again && !seen.Until.Equal(clock(22, 15)) {
			t.Errorf("%s: %s until %s", c.what, seen.Activity, seen.Until)
		}
	}
}

// A limit unknown to the supervisor holds mail; mail that it delivers later is typed, since a
// person has continued.
func TestLimitIsToldBeforeItIsTypedPast(t *testing.T) {
	t.Parallel()
	s := &couriertest.Screen{Above: "> go\n✕ Usage limit reached for x.\n"}
	ch, _, w := typed(t, s, openTyping, adapter.WayTyping)
	if out := ch.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Held || !strings.Contains(out[0].Reason, "usage limit") {
		t.Fatalf("%+v", out)
	}
	if o := w.Wait(t, "the limit", 0, couriertest.Is(team.Limited)); o.Since.IsZero() || !o.Until.IsZero() {
		t.Errorf("told as %+v", o)
	}
	if out := ch.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Accepted || s.Lines() != "text of a" {
		t.Errorf("%+v, sent %q", out, s.Lines())
	}
	s.With(func() { s.Above = "> go\n✕ Usage limit reached for x.\n│ ● 1. Keep trying\n│   2. Stop\n" })
	if out := ch.Deliver(t.Context(), couriertest.Mail("b")); out[0].State != team.Held || s.Lines() != "text of a" {
		t.Errorf("typed into its question: %+v", out)
	}
}
