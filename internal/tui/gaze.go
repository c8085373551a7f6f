package tui

import (
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
)

// gazeFor is how long one input counts as looking.
const gazeFor = 5 * time.Second

// gaze is whether a person may look at the screen.
type gaze struct {
	focused bool
	looks   chan bool // see view.Interest; for the team
	teams   chan bool // the same for the list of teams
	told    time.Time // when looks was last told
}

func newGaze() gaze { return gaze{focused: true, looks: make(chan bool, 1), teams: make(chan bool, 1)} }

// input takes an input. One that does not change the focus says that somebody looks.
func (g *gaze) input(e term.Event) {
	now := time.Now()
	switch {
	case e.Kind == term.Focus:
		g.focused = e.Focused
	case !g.focused || now.Sub(g.told) < gazeFor:
		return
	}
	g.told = now
	for _, c := range []chan bool{g.looks, g.teams} {
		select {
		case <-c: // only the newest counts
		default:
		}
		select {
		case c <- g.focused:
		default:
		}
	}
}
