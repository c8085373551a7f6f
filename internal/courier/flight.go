package courier

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// flightFile is what stands in the bundle of a text that was typed and not sent yet.
const flightFile = "typed.json"

// lostAfter is how long a program that has read what was typed may take to show it.
const lostAfter = 5 * time.Second

// flight is a text that was typed into the terminal. Until the program has read it there,
// nothing shows it, and nothing shows that it is lost either: it may come to stand in the
// box at any time, and is never typed a second time meanwhile, by no supervisor. What the
// program does with its input comes in the order of the input: an agent that was seen at
// work or in a dialog since, or a box with another text, shows that it has read so far.
// So does a terminal in which nothing waits to be read any more: a program that starts may
// throw away what came too early for it, and then nothing else would ever happen.
type flight struct {
	Generation string    `json:"generation"`
	Text       string    `json:"text"`
	IDs        []string  `json:"ids,omitempty"`    // of the mail that it is
	Landed     bool      `json:"landed,omitempty"` // it was seen in the box
	At         time.Time `json:"at"`               // when it was typed
}

func (t *typist) flight() flight {
	var f flight
	if err := ReadJSON(t.f.Bundle, flightFile, &f); err != nil || f.Generation != t.f.Generation {
		return flight{}
	}
	return f
}

// inFlight reports whether what was typed last may still be unread.
func (t *typist) inFlight(seen adapter.Seen) bool {
	f := t.flight()
	switch {
	case f.Text == "":
		return false
	case seen.HasInput && t.ours(seen.Input, f.Text):
		if !f.Landed {
			f.Landed = true
			t.keepFlight(f)
		}
		return false
	case f.Landed || seen.Input != "" || seen.Activity == team.Working || seen.Activity == team.Waiting:
		t.endFlight()
		return false
	}
	return true
}

// lost reports whether the program has read what was typed last and does not show it. It
// is asked while the box is there, and empty.
func (t *typist) lost() bool {
	n, known := unread(t.f.PID)
	if !known || n > 0 || time.Since(t.flight().At) < lostAfter {
		return false
	}
	t.f.Log.Info("typed anew: the program has read it and does not show it", "member", t.f.Name)
	t.endFlight()
	return true
}

// keepFlight returns false where it could not be written: then nothing may be typed.
func (t *typist) keepFlight(f flight) bool {
	f.Generation = t.f.Generation
	if err := WriteJSON(t.f.Bundle, flightFile, f); err != nil {
		t.f.Log.Warn("note what is typed", "member", t.f.Name, "err", err)
		return false
	}
	return true
}

func (t *typist) endFlight() {
	_ = os.Remove(filepath.Join(string(t.f.Bundle), flightFile)) // read again, it ends then
}

// paste types a text that is not sent yet.
func (t *typist) paste(ctx context.Context, text string, ids []string) (why string) {
	if !t.keepFlight(flight{Text: text, IDs: ids, At: time.Now()}) {
		return "it cannot be noted that it is typed"
	}
	if err := t.s.TypeText(ctx, text, false); err != nil {
		if ctx.Err() == nil { // refused, and not broken off
			t.endFlight()
		}
		return "it cannot be typed: " + err.Error()
	}
	return ""
}
