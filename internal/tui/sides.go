package tui

import (
	"fmt"
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

// pairs puts removed lines beside those that were added for them.
func pairs(lines []view.DiffLine) (out []pair) {
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
		for n := range max(removed-i, added-removed) {
			p := pair{-1, -1}
			if i+n < removed {
				p.left = i + n
			}
			if removed+n < added {
				p.right = removed + n
			}
			out = append(out, p)
		}
		i = added
	}
	return out
}

// side draws one side of a row.
func (m *model) side(l view.DiffLine, number, digits int, mark string, width int) string {
	text := plain.Visible(strings.ReplaceAll(l.Text, "\t", "    "))
	gutter := mark + m.style.Dim(fmt.Sprintf("%*d ", digits, number))
	switch l.Kind {
	case view.Added:
		text = m.style.Green("+ " + text)
	case view.Removed:
		text = m.style.Red("- " + text)
	default:
		text = "  " + text
	}
	return view.Cut(gutter+text, width)
}

// pairLine draws a row of two sides in a width. mark returns what stands before a line.
func (m *model) pairLine(lines []view.DiffLine, p pair, digits int, mark func(int) string, width int) string {
	if p.left == p.right {
		switch l := lines[p.left]; l.Kind {
		case view.Hunk:
			return m.style.Cyan(view.Cut(mark(p.left)+plain.Visible(l.Text), width))
		case view.NoEnd:
			return m.style.Dim(view.Cut(strings.Repeat(" ", digits+1)+plain.Visible(l.Text), width))
		default:
		}
	}
	half := max(1, (width-3)/2)
	left, right := "", ""
	if p.left >= 0 {
		left = m.side(lines[p.left], lines[p.left].Old, digits, mark(p.left), half)
	}
	if p.right >= 0 {
		right = m.side(lines[p.right], lines[p.right].New, digits, mark(p.right), half)
	}
	return view.Pad(left, half) + m.style.Dim(" │ ") + right
}
