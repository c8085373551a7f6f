package courier

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// flightFile is the bundle's record of a text that was typed and not sent yet.
const flightFile = "typed.json"

// lostAfter is how long a program that has read a typed text may take to show it.
const lostAfter = 5 * time.Second

// flight is a text that was typed into the terminal. Until the program has read it, nothing shows
// the text, and nothing shows that it is lost: it may appear in the box at any time, so no
// supervisor types it a second time. Programs process input in order: an agent that was seen
// working or in a dialog since then, or a box with another text, shows that the program has read
// that far. So does a terminal without unread input: a starting program may discard early input,
// and then no other sign would ever come.
type flight struct {
	Generation string    `json:"generation"`
	Text       string    `json:"text"`
	IDs        []string  `json:"ids,omitempty"`    // of the mail in the text
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

// inFlight reports whether the last typed text may still be unread.
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

// lost reports whether the program has read the last typed text and does not show it. The caller
// has seen an empty box.
func (t *typist) lost() bool {
	n, known := unread(t.f.PID)
	if !known || n > 0 || time.Since(t.flight().At) < lostAfter {
		return false
	}
	t.f.Log.Info("typed anew: the program has read it and does not show it", "member", t.f.Name)
	t.endFlight()
	return true
}

// keepFlight records f and returns false if that failed: then nothing may be typed.
func (t *typist) keepFlight(f flight) bool {
	f.Generation = t.f.Generation
	if err := WriteJSON(t.f.Bundle, flightFile, f); err != nil {
		t.f.Log.Warn("note what is typed", "member", t.f.Name, "err", err)
		return false
	}
	return true
}

func (t *typist) endFlight() {
	_ = os.Remove(filepath.Join(string(t.f.Bundle), flightFile)) // without the file the next read ends the flight
}

// paste types a text without sending it.
func (t *typist) paste(ctx context.Context, text string, ids []string) (why string) {
	if !t.keepFlight(flight{Text: text, IDs: ids, At: time.Now()}) {
		return "it cannot be noted that it is typed"
	}
	if err := t.s.TypeText(ctx, text, false); err != nil {
		if ctx.Err() == nil { // refused, and not cancelled
			t.endFlight()
		}
		return "it cannot be typed: " + err.Error()
	}
	return ""
}
