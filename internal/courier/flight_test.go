package courier

import (
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// No supervisor types a second time what a slow program has not read yet: the text is sent once it
// is in the box, and typed again only if something shows that the program has read past it.
func TestNothingIsTypedTwice(t *testing.T) {
	t.Parallel()
	s := &couriertest.Screen{Slow: true}
	ch, f, _ := typed(t, s, openTyping, adapter.WayTyping)
	couriertest.TypedOnce(t, s, "text of a", ch, func() couriertest.Channel {
		again, err := openTyping(t.Context(), f, s, couriertest.NewWatcher().Report)
		if err != nil {
			t.Fatal(err)
		}
		return again
	})
}

// A later turn or dialog, or another text in the box, shows that the typed text is lost.
func TestWhatIsGoneIsTypedAnew(t *testing.T) {
	for name, after := range map[string]func(s *couriertest.Screen){
		"a turn": func(s *couriertest.Screen) { s.Above = "⠏ Thinking (esc to cancel, 3s)" },
		"a dialog": func(s *couriertest.Screen) {
			s.Above, s.Dialog = "Allow execution of [Shell]?\n● 1. Allow once\n", true
		},
		"another text":  func(s *couriertest.Screen) { s.Input = "half a li" },
		"it was erased": func(s *couriertest.Screen) { s.Input = "text of a and me" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &couriertest.Screen{Slow: true}
			ch, _, _ := typed(t, s, openTyping, adapter.WayTyping)
			for _, step := range []func(){
				func() {},
				func() { s.With(func() { s.Unread = ""; after(s) }) },
			} {
				step()
				if out := ch.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Held {
					t.Fatalf("%+v", out)
				}
			}
			s.With(func() { s.Above, s.Input, s.Dialog, s.Slow = "", "", false, false })
			if out := ch.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Accepted || s.Lines() != "text of a" {
				t.Errorf("%+v, sent %q", out, s.Lines())
			}
		})
	}
}
