package tui

import (
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/view"
)

const (
	treeGroup = "tree"
	treeDepth = 12 // levels that are indented
)

// treeRows returns the tasks as a tree: below each task those that depend on it. A task that depends
// on several ones stands below the first of them, and the others name it.
func (m *model) treeRows() group {
	s := m.taskRows()
	s.id, s.items = treeGroup, nil
	tasks := m.tasks()
	id, owner := taskWidths(tasks)
	known := map[string]bool{}
	for _, t := range tasks {
		known[t.ID] = true
	}
	below, named := map[string][]view.Task{}, map[string][]view.Task{}
	var roots []view.Task
	for _, t := range tasks {
		on := slices.DeleteFunc(slices.Clone(t.DependsOn), func(id string) bool { return !known[id] })
		if len(on) == 0 {
			roots = append(roots, t)
			continue
		}
		below[on[0]] = append(below[on[0]], t)
		for _, other := range on[1:] {
			named[other] = append(named[other], t)
		}
	}
	var add func(t view.Task, depth int)
	add = func(t view.Task, depth int) {
		known[t.ID] = false
		s.items = append(s.items, indented(m.taskItem(t, id, owner), depth))
		for _, x := range below[t.ID] {
			if known[x.ID] {
				add(x, depth+1)
			}
		}
		for _, x := range named[t.ID] {
			it := m.taskItem(x, id, owner)
			it.id = "also:" + t.ID + ":" + x.ID
			it.line = func(w int) string { return view.Pad(m.style.Dim("also "+view.Clean(x.ID)), w) }
			s.items = append(s.items, indented(it, depth+1))
		}
	}
	for _, t := range roots {
		add(t, 0)
	}
	for _, t := range tasks { // of a cycle
		if known[t.ID] {
			add(t, 0)
		}
	}
	return s
}

// indented is a row below another one.
func indented(it item, depth int) item {
	if depth == 0 {
		return it
	}
	whole := it.line
	it.line = func(w int) string {
		in := strings.Repeat("  ", min(depth, treeDepth)-1) + "└ "
		if n := view.Width(in); n > w/2 { // the task itself needs the room
			in = view.Cut("└ ", w/2)
		}
		return in + whole(w-view.Width(in))
	}
	return it
}
