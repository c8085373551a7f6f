package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
)

// sidesFrom is the number of columns from which changes are shown side by side.
const sidesFrom = 160

// sides reports whether changes are shown side by side.
func (m *model) sides() bool { return m.cols >= sidesFrom && !m.unified }

// turnSides shows changes in the other way.
func (m *model) turnSides() {
	if m.cols < sidesFrom {
		m.say(fmt.Sprintf("side by side needs %d columns, and there are %d", sidesFrom, m.cols), true)
		return
	}
	m.unified = !m.unified
}

// pair is a row of two sides: indexes of the lines of a diff, -1 for none. A line that is on both
// sides is there twice.
type pair struct{ left, right int }

// pairs puts removed lines beside those that were added for them. with has the lines that replace
// each other, see view.Replaced.
func pairs(lines []view.DiffLine, with []int) (out []pair) {
	run := func(i int, kind view.DiffKind) int {
		for i < len(lines) && lines[i].Kind == kind {
			i++
		}
		return i
	}
	for i := 0; i < len(lines); {
		removed := run(i, view.Removed)
		added := run(removed, view.Added)
		if added == i {
			out = append(out, pair{i, i})
			i++
			continue
		}
		right := removed
		for left := i; left < removed; left++ {
			if j := with[left]; j >= right && j < added {
				out = append(beside(out, i, left, right, j), pair{left, j})
				i, right = left+1, j+1
			}
		}
		out = beside(out, i, removed, right, added)
		i = added
	}
	return out
}

// beside adds rows of the removed lines from i on and the added lines from j on, in order.
func beside(out []pair, i, removed, j, added int) []pair {
	for ; i < removed || j < added; i, j = i+1, j+1 {
		p := pair{-1, -1}
		if i < removed {
			p.left = i
		}
		if j < added {
			p.right = j
		}
		out = append(out, p)
	}
	return out
}

// shownDiff has the lines of a file as they are drawn, and what has changed within them.
type shownDiff struct {
	of    *view.DiffLine // the first line that was read
	lines []view.DiffLine
	view.Replaced
}

// shown returns the lines of a file as they are drawn. Those of the file that was drawn last are kept.
func (m *model) shown(f view.FileDiff) *shownDiff {
	switch {
	case len(f.Lines) == 0:
		return &shownDiff{}
	case m.drawn != nil && m.drawn.of == &f.Lines[0]:
		return m.drawn
	}
	d := &shownDiff{of: &f.Lines[0], lines: slices.Clone(f.Lines)}
	for i, l := range d.lines {
		d.lines[i].Text = plain.Visible(strings.ReplaceAll(l.Text, "\t", "    "))
	}
	d.Replaced = view.Replacements(d.lines)
	m.drawn = d
	return d
}

// line draws the text of a line with its sign.
func (d *shownDiff) line(s Style, i int) string {
	switch l := d.lines[i]; l.Kind {
	case view.Added:
		return s.marked(s.Green, "+ ", l.Text, d.Changed[i])
	case view.Removed:
		return s.marked(s.Red, "- ", l.Text, d.Changed[i])
	default:
		return "  " + l.Text
	}
}

// side draws one side of a row.
func (m *model) side(d *shownDiff, i, number, digits int, mark string, width int) string {
	return view.Cut(mark+m.style.Dim(fmt.Sprintf("%*d ", digits, number))+d.line(m.style, i), width)
}

// pairLine draws a row of two sides in a width. mark returns what stands before a line.
func (m *model) pairLine(d *shownDiff, p pair, digits int, mark func(int) string, width int) string {
	if p.left == p.right {
		switch l := d.lines[p.left]; l.Kind {
		case view.Hunk:
			return m.style.Cyan(view.Cut(mark(p.left)+l.Text, width))
		case view.NoEnd:
			return m.style.Dim(view.Cut(strings.Repeat(" ", digits+1)+l.Text, width))
		default:
		}
	}
	half := max(1, (width-3)/2)
	left, right := "", ""
	if p.left >= 0 {
		left = m.side(d, p.left, d.lines[p.left].Old, digits, mark(p.left), half)
	}
	if p.right >= 0 {
		right = m.side(d, p.right, d.lines[p.right].New, digits, mark(p.right), half)
	}
	return view.Pad(left, half) + m.style.Dim(" │ ") + right
}
