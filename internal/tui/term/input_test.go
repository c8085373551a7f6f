package term

import (
	"testing"
	"time"

	"github.com/gdamore/tcell/v3"
)

// A paste is one event, even if Esc comes right before its marks. A paste without an end mark is ended by Ctrl-c
// or Esc after a second without input.
func TestPaste(t *testing.T) {
	t.Parallel()
	var in input
	now := time.Now()
	key := func(k tcell.Key, text string, mod tcell.ModMask) tcell.Event { return tcell.NewEventKey(k, text, mod) }
	be := func(what string, ev tcell.Event, want ...Event) {
		t.Helper()
		got := in.events(ev, now)
		if len(got) != len(want) {
			t.Fatalf("%s: %+v; want %+v", what, got, want)
		}
		for i, w := range want {
			if w.At = now; got[i] != w {
				t.Errorf("%s: %+v; want %+v", what, got[i], w)
			}
		}
	}
	a, ctrlC := key(tcell.KeyRune, "a", 0), key(tcell.KeyRune, "C", tcell.ModCtrl)
	be("a key", a, Event{Key: "a"})
	be("an end alone", tcell.NewEventPaste(false))
	be("start", tcell.NewEventPaste(true))
	be("text", a)
	be("a start within", tcell.NewEventPaste(true))
	be("ctrl-c as text", ctrlC)
	be("text", key(tcell.KeyEnter, "", 0))
	be("end", tcell.NewEventPaste(false), Event{Kind: Paste, Text: "a\n"})
	be("start after esc", key(pasteStart, "", tcell.ModAlt))
	be("text", a)
	be("end after esc", key(pasteEnd, "", tcell.ModAlt), Event{Kind: Paste, Text: "a"})
	for _, k := range []tcell.Event{ctrlC, key(tcell.KeyEsc, "", 0)} {
		be("start", tcell.NewEventPaste(true))
		be("text", a)
		now = now.Add(2 * time.Second)
		be("text after a pause", a)
		be("at once", k)
		now = now.Add(2 * time.Second)
		be("after silence", k, Event{Kind: Paste, Text: "aa"}, Event{Key: keyName(k.(*tcell.EventKey))})
		be("a key", a, Event{Key: "a"})
	}
}
