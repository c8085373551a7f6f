package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/view"
)

// columnsFrom is the width from which the states of the board stand beside each other.
const columnsFrom = 100

// inColumns reports whether the states of the board stand beside each other.
func (m *model) inColumns() bool {
	return m.at == inTasks && m.tasksAs == "board" && m.cols >= columnsFrom
}

// stateRows returns the tasks by state. The counts are those of the whole board.
func (m *model) stateRows() []group {
	counts := m.stateCounts()
	tasks := m.tasks()
	id, owner := taskWidths(tasks)
	var sections []group
	for _, c := range view.Columns(taskOrder(tasks)) {
		title := strings.ToUpper(c.Title)
		s := group{id: title, title: fmt.Sprintf("%s %d", title, max(counts[c.Title], len(c.Tasks)))}
		for _, t := range c.Tasks {
			s.items = append(s.items, m.columnItem(t, id, owner))
		}
		sections = append(sections, s)
	}
	return sections
}

func (m *model) stateCounts() map[string]int {
	c := m.snap.Count()
	return map[string]int{"in work": c.Active, "failed": c.Failed, "ready": c.Ready, "stuck": c.Stuck, "waiting": c.Waiting, "completed": c.Done}
}

// columnItem is a row of the board. The title of a column says the state, so that a narrow one has
// room for the subject.
func (m *model) columnItem(t view.Task, id, owner int) item {
	it := m.taskItem(t, id, owner)
	whole := it.line
	it.line = func(w int) string {
		if w >= 44 || !m.inColumns() {
			return whole(w)
		}
		number := strings.Repeat(" ", max(0, id-len(t.ID))) + view.Clean(t.ID)
		if t.Active() && w >= id+16 {
			return columns(w, " ", []string{number, view.Clean(t.Subject), view.Age(t.Took(m.now))}, []int{id, 0, 3})
		}
		return columns(w, " ", []string{number, view.Clean(t.Subject)}, []int{id, 0})
	}
	return it
}

// drawColumns draws the states of the board beside each other, and the selected task below. States
// without tasks are only named.
func (m *model) drawColumns(f *frame, room int) {
	var shown []group
	empty := []string{}
	counts := m.stateCounts()
	for _, title := range []string{"in work", "failed", "ready", "stuck", "waiting", "completed"} {
		at := slices.IndexFunc(m.sections, func(s group) bool { return s.id == strings.ToUpper(title) })
		if at >= 0 && len(m.sections[at].items) > 0 {
			shown = append(shown, m.sections[at])
		} else {
			empty = append(empty, fmt.Sprintf("%s %d", strings.ToUpper(title), counts[title]))
		}
	}
	height := room
	if room >= 14 {
		height = room * 3 / 5
	}
	base := len(f.lines)
	if len(empty) > 0 && height > 1 {
		f.add(m.style.Dim(" " + strings.Join(empty, "  ")))
	}
	rows := height - (len(f.lines) - base)
	lines := make([]string, rows)
	left := 0
	for i, s := range shown {
		width := (m.cols - left) / (len(shown) - i)
		g := frame{lines: make([]string, len(f.lines))}
		cells := m.list(&g, s, left, width-1, rows)
		f.regions = append(f.regions, g.regions...)
		for y := range lines {
			cell := ""
			if y < len(cells) {
				cell = cells[y]
			}
			if lines[y] += view.Pad(cell, width-1); i < len(shown)-1 {
				lines[y] += m.style.Dim("│")
			}
		}
		left += width
	}
	f.add(lines...)
	if height < room {
		f.add("")
		for _, l := range m.detail(f, m.cols-2, room-height-1) {
			f.add(" " + l)
		}
	}
}

// inColumn returns the column of the selected row, and its position there.
func (m *model) inColumn() (column, at int) {
	for i, s := range m.sections {
		if at := slices.IndexFunc(s.items, func(it item) bool { return it.id == m.cursor }); at >= 0 {
			return i, at
		}
	}
	return -1, -1
}

// acrossColumns selects the row at the same height of the next column with rows (1), or of the
// one before (-1).
func (m *model) acrossColumns(n int) {
	column, at := m.inColumn()
	if column < 0 {
		return
	}
	y := at - m.top[m.sections[column].id]
	for i := column + n; i >= 0 && i < len(m.sections); i += n {
		if s := m.sections[i]; len(s.items) > 0 {
			m.choose(s.items[clamp(m.top[s.id]+y, 0, len(s.items)-1)].id)
			return
		}
	}
}
