package tui

import (
	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
)

// leastColumn is the minimum width of either column.
const leastColumn = 44

// dividers are where the mouse has dragged the divider of each place. The values may be out of the
// bounds of the terminal, which may have shrunk: beside limits them.
type dividers struct {
	at   map[place]int
	held bool // the mouse holds the one on the screen
}

// bar is the position of the divider in a frame; the zero value means none.
type bar struct{ x, top, bottom int } // bottom is below its last cell

// beside draws two columns of a height. left is the width of the left one, unless the divider was
// dragged.
func (m *model) beside(f *frame, left, height int, draw func(f *frame, width int) []string) {
	if x, ok := m.dividers.at[m.at]; ok {
		right := leastColumn
		if m.at == inChanges && m.sides() {
			right = sidesFrom - leastColumn - 3
		}
		left = clamp(x, leastColumn, max(leastColumn, m.cols-3-right))
	}
	f.bar = bar{left, len(f.lines), len(f.lines) + height}
	column := draw(f, left)
	right := m.withSole(m.detail(f, m.cols-left-3, height), m.cols-left-3, height)
	line := func(of []string, y int) string {
		if y < len(of) {
			return of[y]
		}
		return ""
	}
	for y := range height {
		f.add(view.Pad(line(column, y), left) + m.style.Dim("│") + " " + line(right, y))
	}
}

// dragged handles what the mouse does with the divider, and reports whether it was that.
func (r *run) dragged(e term.Event) bool {
	m, b := r.m, r.frame.bar
	switch {
	case e.Key == "left":
		m.dividers.held = e.X == b.x && e.Y >= b.top && e.Y < b.bottom
	case e.Key == "release":
		m.dividers.held = false
	case e.Key == "drag" && m.dividers.held && b != bar{}:
		if m.dividers.at == nil {
			m.dividers.at = map[place]int{}
		}
		m.dividers.at[m.at] = e.X
	}
	return m.dividers.held
}
