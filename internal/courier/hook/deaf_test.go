package hook

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/team"
)

// unheard returns a channel to an idle program whose hooks were never heard.
func unheard(t *testing.T) (*channel, *couriertest.Screen, *couriertest.Watcher) {
	t.Helper()
	s := &couriertest.Screen{}
	h, f, w := woken(t, s)
	if err := os.Remove(courier.SeenPath(f.Bundle)); err != nil {
		t.Fatal(err)
	}
	return h, s, w
}

func saysNoHooks(want bool) func(team.Observation) bool {
	return func(o team.Observation) bool { return o.NoHooks != nil && *o.NoHooks == want }
}

// A program that runs no hook is not woken for mail that nothing would fetch: the mail is typed,
// in one turn. A hook that is heard later takes over.
func TestMailWithoutHooks(t *testing.T) {
	t.Parallel()
	h, s, w := unheard(t)
	if out := h.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != "" || s.Lines() != "" {
		t.Fatalf("before its first hook can have come: %+v, typed %q", out, s.Lines())
	}
	h.patience = 0
	if out := h.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Accepted || s.Lines() != "text of a" {
		t.Fatalf("%+v, typed %q", out, s.Lines())
	}
	w.Wait(t, "no hooks", 0, saysNoHooks(true))
	ids, err := courier.Typed(h.f.Bundle, h.f.Generation)
	if err != nil || !ids["a"] || len(ids) != 1 {
		t.Errorf("hooks may give what was typed: %v, %v", ids, err)
	}
	if err := courier.WriteSeen(h.f.Bundle, courier.SeenFile{Generation: h.f.Generation, Seen: team.Observation{At: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	if h.Deliver(t.Context(), couriertest.Mail("b")); s.Lines() != "text of a|"+adapter.WakeText {
		t.Errorf("a hook was heard: typed %q", s.Lines())
	}
	w.Wait(t, "hooks", 0, saysNoHooks(false))
}

// endsNow is a screen that is at rest from the second look on.
type endsNow struct {
	*couriertest.Screen
	looks int
}

func (s *endsNow) Scrolling(ctx context.Context) (bool, error) {
	s.looks++
	return s.looks == 1, nil
}

// TestNoWakeUpAtTheEndOfATurn: an agent whose first hook is awaited is not woken at the end of a turn,
// where one look finds it at work and the next at rest: if no hook runs, that is a turn for nothing,
// before the one of the mail.
func TestNoWakeUpAtTheEndOfATurn(t *testing.T) {
	t.Parallel()
	s := &endsNow{Screen: &couriertest.Screen{}}
	h, f, w := woken(t, s)
	if err := os.Remove(courier.SeenPath(f.Bundle)); err != nil {
		t.Fatal(err)
	}
	if out := h.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Held || out[0].Reason == "" || s.Lines() != "" {
		t.Fatalf("%+v, typed %q", out, s.Lines())
	}
	h.patience = 0
	if out := h.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Accepted || s.Lines() != "text of a" {
		t.Errorf("%+v, typed %q", out, s.Lines())
	}
	w.Wait(t, "no hooks", 0, saysNoHooks(true))
}

// TestDialogOfAPersonWhoIsAway checks that mail held for a dialog is not tried again every three seconds
// as long as the dialog stays: the watch of the screen reports its end. A page that a person scrolls
// makes no output at its end, so there it is.
func TestDialogOfAPersonWhoIsAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s    *couriertest.Screen
		want int // attempts within half a minute
	}{
		"dialog":  {&couriertest.Screen{Dialog: true, Above: couriertest.GeminiDialog}, 0},
		"turn":    {&couriertest.Screen{Above: "⠏ (esc to cancel, 1s)"}, 0},
		"scrolls": {&couriertest.Screen{Scrolls: true}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h, f, w := woken(t, c.s)
				if err := os.Remove(courier.SeenPath(f.Bundle)); err != nil {
					t.Fatal(err)
				}
				tried := 0
				for end := time.Now().Add(29 * time.Second); time.Now().Before(end); {
					if out := h.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Held || c.s.Lines() != "" {
						t.Fatalf("%+v, sent %q", out, c.s.Lines())
					}
					for mark := w.Mark(); w.Mark() == mark && time.Now().Before(end); {
						if err := pause.For(t.Context(), 100*time.Millisecond); err != nil {
							t.Fatal(err)
						}
					}
					tried = len(slices.DeleteFunc(w.All(), func(o team.Observation) bool { return !strings.Contains(o.Source, "tried again") }))
				}
				if tried != c.want {
					t.Errorf("tried again %d times, want %d", tried, c.want)
				}
			})
		})
	}
}

// A partly typed message is typed to its end even if a hook is heard meanwhile: hooks skip it.
func TestTypedMailStaysTyped(t *testing.T) {
	t.Parallel()
	h, s, _ := unheard(t)
	h.patience = 0
	s.OnPaste = func(s *couriertest.Screen) { s.Scrolls = true } // a person begins to scroll at that moment
	if out := h.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Held {
		t.Fatalf("%+v", out)
	}
	s.With(func() { s.Scrolls, s.OnPaste = false, nil })
	if err := courier.WriteSeen(h.f.Bundle, courier.SeenFile{Generation: h.f.Generation, Seen: team.Observation{At: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	ch, err := Open(context.Background(), h.f, s, h.report) // another supervisor
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ch.Close)
	out := ch.Deliver(t.Context(), couriertest.Mail("a", "b"))
	if out[0].State != team.Accepted || out[1].State != team.Held || s.Lines() != "text of a" {
		t.Errorf("%+v, typed %q", out, s.Lines())
	}
}

// Wake-ups without effect stop: after one if no hook was ever heard, after two otherwise.
func TestWakeUpsWithoutEffectEnd(t *testing.T) {
	t.Parallel()
	for name, once := range map[string]bool{"heard once": true, "never heard": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s, w := unheard(t)
			h.f.Link.Agent = adapter.Codex // it calls no hook at its start
			want := adapter.WakeText
			if once {
				if err := courier.WriteSeen(h.f.Bundle, courier.SeenFile{Generation: h.f.Generation, Seen: team.Observation{At: time.Now()}}); err != nil {
					t.Fatal(err)
				}
				want += "|" + adapter.WakeText
			}
			want += "|text of a"
			for range 5 {
				h.Deliver(t.Context(), couriertest.Mail("a"))
				h.woken = h.woken.Add(-wakeAgain)
				if s.Lines() == want {
					break
				}
			}
			if got := s.Lines(); got != want {
				t.Fatalf("typed %q, want %q", got, want)
			}
			w.Wait(t, "no hooks", 0, saysNoHooks(true))
		})
	}
}

// A hook heard since a wake-up shows that hooks run: the mail is left to them.
func TestWakeUpThatWasHeard(t *testing.T) {
	t.Parallel()
	h, s, _ := unheard(t)
	h.f.Link.Agent = adapter.Codex
	for range 4 {
		h.Deliver(t.Context(), couriertest.Mail("a"))
		h.woken = h.woken.Add(-wakeAgain)
		if err := courier.WriteSeen(h.f.Bundle, courier.SeenFile{Generation: h.f.Generation, Seen: team.Observation{At: time.Now()}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Lines(); strings.Contains(got, "text of a") {
		t.Errorf("typed %q", got)
	}
}

// A message that some version would cut off is typed while the version is unknown.
func TestLongMailOfAnUnknownVersionIsTyped(t *testing.T) {
	t.Parallel()
	f := courier.Facts{Bundle: team.Bundle(t.TempDir()), Generation: "g1", Link: adapter.Link{Agent: adapter.Claude, Generation: "g1", Assumed: "2.1.34"}}
	if err := courier.WriteSeen(f.Bundle, courier.SeenFile{Generation: "g1", Seen: team.Observation{At: time.Now()}}); err != nil { // it runs its hooks
		t.Fatal(err)
	}
	long, short := team.Mail{ID: "long", Text: strings.Repeat("x", 20_000)}, team.Mail{ID: "short", Text: "short"}
	typed := func(f courier.Facts) []team.Mail {
		t.Helper()
		h := &channel{Typing: courier.NewTyping(f, nil, nil), f: f}
		out, err := h.typedMail(t.Context(), []team.Mail{short, long})
		if h.given != nil {
			h.given.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	known := f
	known.Link.Version = "2.1.329"
	if out := typed(known); len(out) > 0 {
		t.Errorf("typed to a version that is known: %d", len(out))
	}
	if out := typed(f); len(out) != 1 || out[0].ID != "long" {
		t.Errorf("typed: %+v", out)
	}
	if ids, err := courier.Typed(f.Bundle, "g1"); err != nil || !ids["long"] || ids["short"] {
		t.Errorf("hooks are to leave alone %v, %v", ids, err)
	}
}
