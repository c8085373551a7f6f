package courier

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/procfs"
	"github.com/teamctl/teamctl/team"
)

// flightFile is the bundle's record of a text that was typed and not sent yet.
const flightFile = "typed.json"

// A program that has read a typed text and does not show it has lost it once it has been at rest for
// lostAfter. A program that computes may still be about to draw, so it gets until busyAfter.
const (
	lostAfter = 5 * time.Second
	busyAfter = 5 * time.Minute
)

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
	// Rest is the time since when the program, which has read the text, is at rest, and Used its
	// processor time then.
	Rest time.Time     `json:"rest,omitzero"`
	Used time.Duration `json:"used,omitempty"`
}

func (t *Typist) flight() flight {
	var f flight
	if err := ReadJSON(t.f.Bundle, flightFile, &f); err != nil || f.Generation != t.f.Generation {
		return flight{}
	}
	return f
}

// inFlight reports whether the last typed text may still be unread.
func (t *Typist) inFlight(seen adapter.Seen) bool {
	f := t.flight()
	switch {
	case f.Text == "":
		return false
	case seen.HasInput && t.Ours(seen.Input, f.Text):
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

// lost reports whether the program has read the last typed text and does not show it, although it
// is at rest. The caller has seen an empty box. On a busy machine a program may need minutes to draw
// what it has read; typed again meanwhile, the text would appear as often as it was typed.
func (t *Typist) lost() bool {
	n, known := unread(t.f.PID)
	p, err := procfs.Of(t.f.PID)
	if !known || n > 0 || err != nil {
		return false
	}
	f, now := t.flight(), time.Now()
	if now.Sub(f.At) < busyAfter {
		if f.Rest.IsZero() || p.State != 'S' || p.Used-f.Used > now.Sub(f.Rest)/10 {
			f.Rest, f.Used = now, p.Used
			t.keepFlight(f)
		}
		if now.Sub(f.Rest) < lostAfter {
			return false
		}
	}
	t.f.Log.Info("typed anew: the program has read it and does not show it", "member", t.f.Name)
	t.endFlight()
	return true
}

// keepFlight records f and returns false if that failed: then nothing may be typed.
func (t *Typist) keepFlight(f flight) bool {
	f.Generation = t.f.Generation
	if err := WriteJSON(t.f.Bundle, flightFile, f); err != nil {
		t.f.Log.Warn("note what is typed", "member", t.f.Name, "err", err)
		return false
	}
	return true
}

func (t *Typist) endFlight() {
	_ = os.Remove(filepath.Join(string(t.f.Bundle), flightFile)) // without the file the next read ends the flight
}

// paste types a text without sending it.
func (t *Typist) paste(ctx context.Context, text string, ids []string) (why string) {
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
