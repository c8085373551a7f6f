package tui

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
)

// TestDivider drags the divider between the columns: it follows the mouse between the minimum widths of
// the columns, stays through other places and sizes, and nothing else drags it.
func TestDivider(t *testing.T) {
	t.Parallel()
	s := newOnPaper(t, &fuzzed{}, &fuzzed{})
	size := func(cols int) {
		s.term = &paper{cols, 30}
		s.event(term.Event{Kind: term.Resize, At: s.now})
		s.look(0)
	}
	mouse := func(key string, x, y int) {
		s.event(term.Event{Kind: term.Mouse, Key: key, X: x, Y: y, At: s.now})
		s.look(0)
	}
	at := func(want int) {
		t.Helper()
		b := s.frame.bar
		if b.x != want {
			t.Fatalf("the divider is at %d; want %d", b.x, want)
		}
		if b.bottom-b.top < 10 {
			t.Fatalf("a divider from %d to %d", b.top, b.bottom)
		}
		for y := b.top; y < b.bottom; y++ {
			if left, _, ok := strings.Cut(s.frame.lines[y], "│"); !ok || view.Width(left) != want {
				t.Fatalf("no divider at %d of %q", want, s.frame.lines[y])
			}
		}
		for _, g := range s.frame.regions {
			if g.y >= b.top && g.y < b.bottom && g.right > want {
				t.Errorf("a row to %d beyond the divider at %d", g.right, want)
			}
		}
	}
	size(140)
	at(64)
	cursor, y := s.m.cursor, s.frame.bar.top+5
	mouse("left", 64, y)
	mouse("drag", 70, y+1)
	at(70)
	mouse("drag", 20, 0)
	at(leastColumn)
	mouse("drag", 139, y)
	at(140 - 3 - leastColumn)
	mouse("drag", 80, y)
	mouse("release", 80, y)
	at(80)
	if s.m.cursor != cursor {
		t.Errorf("dragging has selected %s; %s was", s.m.cursor, cursor)
	}
	mouse("drag", 90, y) // released
	mouse("left", 60, y) // a row
	mouse("drag", 90, y)
	mouse("left", 80, 0) // above it
	mouse("drag", 90, y)
	mouse("left", 81, y)
	mouse("drag", 90, y)
	mouse("release", 90, y)
	at(80)

	size(110) // too small for it
	at(110 - 3 - leastColumn)
	size(140)
	at(80)
	s.goTo(inTasks)
	s.look(0)
	at(56)
	s.goTo(inTeam)
	s.look(0)
	at(80)

	mouse("left", 80, y)
	s.types("?") // covers it
	mouse("drag", 60, y)
	s.types("esc")
	if text := s.look(0); !strings.Contains(text, "MEMBERS") {
		t.Fatalf("not the team:\n%s", text)
	}
	at(80)
}

// TestDividerBySides checks that the two sides of a change keep their minimum width.
func TestDividerBySides(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(8), 180, 30)
	m.at, m.dividers.at = inChanges, map[place]int{inChanges: 90}
	for unified, want := range map[bool]int{false: 180 - sidesFrom + leastColumn, true: 90} {
		m.unified = unified
		f := frame{}
		m.beside(&f, leastColumn, 5, func(*frame, int) []string { return nil })
		if f.bar.x != want {
			t.Errorf("one column %v: the divider is at %d; want %d", unified, f.bar.x, want)
		}
	}
}
