package courier

import (
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// The words of a limit name an hour and stay on the screen when that is over: they
// mean the hour that they meant first, also to the next supervisor.
func TestLimitMeansItsFirstHour(t *testing.T) {
	t.Parallel()
	s := &fakeScreen{}
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
		s.with(func() { s.above = c.above })
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

// A limit that the supervisor has not heard of holds mail; what it then gives all the
// same, it gives because a person went on.
func TestLimitIsToldBeforeItIsTypedPast(t *testing.T) {
	t.Parallel()
	s := &fakeScreen{above: "> go\n✕ Usage limit reached for x.\n"}
	ch, _, w := typed(t, s, openTyping, adapter.WayTyping)
	if out := ch.Deliver(t.Context(), mail("a")); out[0].State != team.Held || !strings.Contains(out[0].Reason, "usage limit") {
		t.Fatalf("%+v", out)
	}
	if o := w.wait(t, "the limit", 0, is(team.Limited)); o.Since.IsZero() || !o.Until.IsZero() {
		t.Errorf("told as %+v", o)
	}
	if out := ch.Deliver(t.Context(), mail("a")); out[0].State != team.Accepted || s.lines() != "text of a" {
		t.Errorf("%+v, sent %q", out, s.lines())
	}
	s.with(func() { s.above = "> go\n✕ Usage limit reached for x.\n│ ● 1. Keep trying\n│   2. Stop\n" })
	if out := ch.Deliver(t.Context(), mail("b")); out[0].State != team.Held || s.lines() != "text of a" {
		t.Errorf("typed into its question: %+v", out)
	}
}

// Codex tells of a limit by the error of a turn, and of its end to the second by its
// account. The thread is at rest because of it, and the next turn ends that. The first
// turn of a thread may be over before anybody could subscribe to it.
func TestAppServerLimit(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	startCodex(t, r, false)
	r.open(t, openAppServer)
	r.wait(t, "the thread", 0, ready)
	for _, id := range []string{"first", "second"} {
		from := r.mark()
		before := time.Now()
		r.deliver(t, false, id, "@@fail 429 You've hit your usage limit, until within 2h")
		o := r.wait(t, "the limit of the "+id, from, is(team.Limited))
		if left := o.Until.Sub(before); left < 2*time.Hour-time.Minute || left > 2*time.Hour+10*time.Minute || !strings.Contains(o.Evidence[0], "usage limit") {
			t.Errorf("limited for %s by %q", left, o.Evidence)
		}
		if o.Began().Before(before.Add(-2 * time.Second)) {
			t.Errorf("since %s, before %s", o.Began(), before)
		}
		// Whoever takes over learns it from the thread.
		r.ch.Close()
		from = r.mark()
		r.open(t, openAppServer)
		again := r.wait(t, "the limit again", from, is(team.Limited))
		if d := again.Began().Sub(o.Began()); d < -time.Minute || d > time.Minute {
			t.Errorf("since %s, then since %s", o.Began(), again.Began())
		}
		from = r.mark()
		r.deliver(t, false, id+" and on", "go on")
		r.wait(t, "working", from, is(team.Working))
		r.wait(t, "idle", from, is(team.Idle))
	}
	from := r.mark()
	r.deliver(t, false, "m3", "@@fail 500 something else")
	r.wait(t, "idle", from, is(team.Idle))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.all[from:] {
		if o.Activity == team.Limited {
			t.Errorf("another error is a limit: %+v", o)
		}
	}
}
