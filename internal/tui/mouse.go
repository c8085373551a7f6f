package tui

import (
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/internal/tui/term"
)

// mouse handles a click, the wheel or a drag; true leaves the screen.
func (r *run) mouse(e term.Event) (leave bool) {
	if r.dragged(e) {
		return false
	}
	m := r.m
	switch e.Key {
	case "wheel-down", "wheel-up":
		n := 3
		if e.Key == "wheel-up" {
			n = -3
		}
		switch m.over.kind {
		case noOverlay:
			r.step(n)
		case requestOverlay:
			if m.planOpen() {
				r.planMove(n)
			} else {
				m.over.scroll += n
			}
		default:
			m.over.at += n
		}
	case "left":
		for _, g := range r.frame.regions {
			if g.y != e.Y || e.X < g.left || e.X >= g.right {
				continue
			}
			if key, ok := strings.CutPrefix(g.id, keyRegion); ok {
				if e.At.Sub(r.footAt) < unread {
					m.say("nothing was done: these keys had not been on the screen for long enough", true)
					return false
				}
				return r.event(term.Event{Kind: term.Key, Key: key, At: e.At})
			}
			if n, ok := strings.CutPrefix(g.id, "choice:"); ok {
				_, _ = fmt.Sscan(n, &m.over.at) // it is a number
				if list := m.matching(); m.over.at < len(list) {
					return r.chosen(list[m.over.at], e)
				}
				return false
			}
			if m.over.kind != noOverlay {
				return false
			}
			if m.cursor == g.id && e.At.Sub(m.lastKey) < settle/4 { // a double click
				r.open()
				return false
			}
			m.lastKey = e.At
			m.choose(g.id)
			return false
		}
	case "right": // the menu of the row under the pointer
		if m.over.kind != noOverlay {
			return false
		}
		for _, g := range r.frame.regions {
			if g.y == e.Y && e.X >= g.left && e.X < g.right {
				m.lastKey = e.At
				m.choose(g.id)
			}
		}
		return r.command("menu", e)
	}
	return false
}
