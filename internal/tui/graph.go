package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/teamctl/teamctl/internal/view"
)

// graph is the graph of tasks as it is shown. Its rows are the nodes by layer, top to bottom.
type graph struct {
	near view.Near // read around a task; ID is "" before
	g    view.Graph
	err  error
	left int // first cell that is shown
}

// graphNodes is the number of tasks up to which a graph shows all; otherwise it shows those around
// the selected one.
const graphNodes = 40

const graphGroup = "graph"

func (m *model) inGraph() bool { return m.at == inTasks && m.tasksAs == "graph" }

// graphPart reports whether the graph shows only the tasks around the selected one.
func (m *model) graphPart() bool { return m.snap.Count().Total > graphNodes }

// nearWanted returns the task around which the graph is to be read, "" if none is.
func (m *model) nearWanted() string {
	id, ok := strings.CutPrefix(m.cursor, "task:")
	if !ok || !m.inGraph() || !m.graphPart() || m.graph.near.ID == id {
		return ""
	}
	return id
}

func (r *run) readNear(id string) {
	t := r.team
	r.read("near", func(ctx context.Context) func(*model) {
		n, err := t.Near(ctx, id)
		return func(m *model) {
			if err != nil { // it is deleted: the list has another one
				m.graph.near = view.Near{ID: id}
				return
			}
			m.graph.near = n
		}
	})
}

// graphTasks returns the tasks of the graph. Until those around the selected one are read, these
// are the ones that were shown before, or itself.
func (m *model) graphTasks() []view.Task {
	if !m.graphPart() {
		return m.snap.Tasks
	}
	id, _ := strings.CutPrefix(m.cursor, "task:")
	is := func(t view.Task) bool { return t.ID == id }
	if slices.ContainsFunc(m.graph.near.Tasks, is) {
		return m.graph.near.Tasks
	}
	sorted := taskOrder(m.snap.Tasks)
	at := max(0, slices.IndexFunc(sorted, is))
	return sorted[at:min(len(sorted), at+1)]
}

// graphRows lays out the graph, and returns its nodes as rows.
func (m *model) graphRows() group {
	s := group{id: graphGroup, title: fmt.Sprintf("TASKS %d", m.snap.Count().Total)}
	tasks := m.graphTasks()
	deps := map[string][]string{}
	for _, t := range tasks {
		deps[t.ID] = t.DependsOn
	}
	x := &m.graph
	if x.g, x.err = view.NewGraph(tasks, deps, m.now); x.err != nil {
		return s
	}
	if m.graphPart() {
		x.g.Fold(x.near.Before, x.near.After)
	}
	nodes := slices.SortedStableFunc(slices.Values(x.g.Nodes), func(a, b view.GraphNode) int {
		return cmp.Or(a.Layer-b.Layer, a.Row-b.Row)
	})
	id, owner := taskWidths(tasks)
	for _, n := range nodes {
		s.items = append(s.items, m.taskItem(n.Task, id, owner))
	}
	return s
}

// graphAlong selects what the selected task depends on (-1), or what depends on it (1): the one
// whose row is nearest.
func (m *model) graphAlong(n int) {
	g := m.graph.g
	node := func(id string) (view.GraphNode, bool) {
		at := slices.IndexFunc(g.Nodes, func(x view.GraphNode) bool { return taskID(x.Task) == id })
		if at < 0 {
			return view.GraphNode{}, false
		}
		return g.Nodes[at], true
	}
	from, ok := node(m.cursor)
	if !ok {
		return
	}
	var best view.GraphNode
	for _, e := range g.Edges {
		self, other := e.To, e.From
		if n > 0 {
			self, other = e.From, e.To
		}
		if self != from.ID {
			continue
		}
		x, ok := node("task:" + other)
		far := func(y view.GraphNode) int { return max(y.Row-from.Row, from.Row-y.Row) }
		if ok && (best.ID == "" || cmp.Or(far(x)-far(best), x.Row-best.Row) < 0) {
			best = x
		}
	}
	if best.ID != "" && m.shows(taskID(best.Task)) {
		m.choose(taskID(best.Task))
	}
}

// shows reports whether a row can be selected.
func (m *model) shows(id string) bool {
	return slices.ContainsFunc(m.sections, func(s group) bool {
		return slices.ContainsFunc(s.items, func(it item) bool { return it.id == id })
	})
}

// drawGraph draws the part of the graph in which the selected task is.
func (m *model) drawGraph(f *frame, room int) {
	x := &m.graph
	switch {
	case x.err != nil:
		f.add(" " + x.err.Error())
		return
	case len(x.g.Nodes) == 0:
		f.add(" no tasks")
		return
	}
	d := x.g.DrawIn(m.now, m.cols)
	lines := d.Lines
	if m.graphPart() {
		lines = append(lines, "", fmt.Sprintf(" %d of %d tasks, those around the selected one", len(x.g.Nodes), m.snap.Count().Total))
	}
	widest := 0
	for _, l := range lines {
		widest = max(widest, view.Width(l))
	}
	spot, ok := d.Spots[strings.TrimPrefix(m.cursor, "task:")]
	if ok { // with the mark before it, and what surrounds it
		m.scroll = clamp(m.scroll, spot.Line-room+2, spot.Line-1)
		m.scroll = clamp(m.scroll, spot.Line-room+1, spot.Line)
		x.left = clamp(x.left, spot.Right+1-m.cols, spot.Left-1)
	}
	m.scroll = clamp(m.scroll, 0, max(0, len(lines)-room))
	x.left = clamp(x.left, 0, max(0, widest-m.cols))
	base := len(f.lines)
	for i := m.scroll; i < min(len(lines), m.scroll+room); i++ {
		line := ansi.Cut(lines[i], x.left, x.left+m.cols)
		if ok && i == spot.Line {
			before, label := ansi.Cut(lines[i], x.left, max(x.left, spot.Left-1)), ansi.Cut(lines[i], max(x.left, spot.Left), spot.Right)
			line = before + m.style.Bold("›"+label) + ansi.Cut(lines[i], spot.Right, x.left+m.cols)
		} else if i >= len(d.Lines) {
			line = m.style.Dim(line)
		}
		f.add(line)
	}
	for id, s := range d.Spots {
		if y := s.Line - m.scroll; y >= 0 && y < room && s.Right > x.left {
			f.regions = append(f.regions, region{y: base + y, left: max(0, s.Left-1-x.left), right: s.Right - x.left, id: "task:" + id})
		}
	}
}
