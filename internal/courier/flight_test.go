package courier

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// No supervisor types a second time what a slow program has not read yet: the text is sent once it
// is in the box, and typed again only if something shows that the program has read past it.
func TestNothingIsTypedTwice(t *testing.T) {
	for name, c := range map[string]struct {
		open Opener
		text string
	}{"hooks": {openHooks, adapter.WakeText}, "typing": {openTyping, "text of a"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &fakeScreen{slow: true}
			ch, f, _ := typed(t, s, c.open, adapter.WayHooks, adapter.WayTyping)
			held := func(why string, ids ...string) {
				t.Helper()
				if out := ch.Deliver(t.Context(), mail(ids...)); out[0].State != team.Held || !strings.Contains(out[0].Reason, why) {
					t.Fatalf("%+v, want held: %s", out, why)
				}
				if s.unread != c.text || s.lines() != "" {
					t.Fatalf("%q is to be read, and %q was sent", s.unread, s.lines())
				}
			}
			held("not seen to have arrived", "a")
			held("may still have to read it", "a", "b")
			ch.Close()
			var err error
			if ch, err = c.open(t.Context(), f, s, couriertest.NewWatcher().Report); err != nil { // after a kill
				t.Fatal(err)
			}
			t.Cleanup(ch.Close)
			held("may still have to read it", "a", "b")
			s.with(func() { s.slow, s.input, s.unread = false, s.unread, "" })
			out := ch.Deliver(t.Context(), mail("a", "b"))
			if s.lines() != c.text || name == "typing" && (out[0].State != team.Accepted || out[1].State != team.Held) {
				t.Fatalf("sent %q: %+v", s.lines(), out)
			}
		})
	}
}

// A later turn or dialog, or another text in the box, shows that the typed text is lost.
func TestWhatIsGoneIsTypedAnew(t *testing.T) {
	for name, after := range map[string]func(s *fakeScreen){
		"a turn":        func(s *fakeScreen) { s.above = "⠏ Thinking (esc to cancel, 3s)" },
		"a dialog":      func(s *fakeScreen) { s.above, s.dialog = "Allow execution of [Shell]?\n● 1. Allow once\n", true },
		"another text":  func(s *fakeScreen) { s.input = "half a li" },
		"it was erased": func(s *fakeScreen) { s.input = "text of a and me" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &fakeScreen{slow: true}
			ch, _, _ := typed(t, s, openTyping, adapter.WayTyping)
			for _, step := range []func(){
				func() {},
				func() { s.with(func() { s.unread = ""; after(s) }) },
			} {
				step()
				if out := ch.Deliver(t.Context(), mail("a")); out[0].State != team.Held {
					t.Fatalf("%+v", out)
				}
			}
			s.with(func() { s.above, s.input, s.dialog, s.slow = "", "", false, false })
			if out := ch.Deliver(t.Context(), mail("a")); out[0].State != team.Accepted || s.lines() != "text of a" {
				t.Errorf("%+v, sent %q", out, s.lines())
			}
		})
	}
}
