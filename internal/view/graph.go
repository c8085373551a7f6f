package view

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Graph is the dependencies of tasks, drawn in layers from left to right: every task is to the
// right of all its dependencies. The same tasks give the same Graph.
type Graph struct {
	Nodes     []GraphNode `json:"nodes"` // in the order of the tasks
	Edges     []GraphEdge `json:"edges"`
	Layers    int         `json:"layers"`
	Rows      int         `json:"rows"`
	Crossings int         `json:"crossings"` // of edges
	Critical  []string    `json:"criticalPath"`

	lanes [][]lane // of each layer, top to bottom
	hops  []hop
}

// GraphNode is a task with its position. Nodes of a layer have different rows.
type GraphNode struct {
	Task
	DependsOn []string `json:"dependsOn"` // only those in the graph
	Layer     int      `json:"layer"`
	Row       int      `json:"row"`
	Critical  bool     `json:"critical"`
	// Before and After are how many dependencies and dependents are not in the graph, see Fold.
	Before int `json:"-"`
	After  int `json:"-"`
}

// GraphEdge leads from a dependency to its dependent. Rows are the rows that it passes, from the
// layer of From to that of To.
type GraphEdge struct {
	From string `json:"from"`
	To   string `json:"to"`
	Rows []int  `json:"rows"`
}

// lane is a position in a layer: a node, or a passing edge.
type lane struct {
	node int // -1 for an edge
	row  int
}

// hop is the part of an edge between two adjacent layers, by the positions of its ends in their
// layers.
type hop struct{ layer, from, to, edge int }

// maxGraph is the maximum number of nodes, plus layers passed by edges.
const maxGraph = 20_000

// ErrLargeGraph is the error for tasks whose drawing would be too large to be useful.
var ErrLargeGraph = errors.New("the graph is too large to be drawn")

// NewGraph lays out tasks. deps has the dependencies of each task; those not among the tasks are
// omitted, and so are edges that would close a cycle.
func NewGraph(tasks []Task, deps map[string][]string, now time.Time) (Graph, error) {
	g := Graph{Nodes: make([]GraphNode, len(tasks)), Edges: []GraphEdge{}, Critical: []string{}}
	at := make(map[string]int, len(tasks))
	for i, t := range tasks {
		g.Nodes[i] = GraphNode{Task: t, DependsOn: []string{}}
		at[t.ID] = i
	}
	from := make([][]int, len(tasks)) // dependencies of each
	for i, t := range tasks {
		for _, id := range deps[t.ID] {
			if d, ok := at[id]; ok && !slices.Contains(from[i], d) {
				from[i] = append(from[i], d)
			}
		}
	}
	order := g.rank(from)
	size := len(tasks)
	for _, i := range order {
		for _, d := range from[i] {
			size += g.Nodes[i].Layer - g.Nodes[d].Layer
			g.Nodes[i].DependsOn = append(g.Nodes[i].DependsOn, tasks[d].ID)
		}
	}
	if size > maxGraph {
		return Graph{}, ErrLargeGraph
	}
	g.critical(from, order, now)
	near := g
	near.Nodes = slices.Clone(g.Nodes)
	g.arrange(from)
	if g.Crossings > 0 { // tasks close to what needs them cross less, those that can begin at the left read better
		near.Edges = []GraphEdge{}
		near.tighten(from)
		if near.arrange(from); near.Crossings < g.Crossings {
			return near, nil
		}
	}
	return g, nil
}

// tightenPasses bounds the passes of tighten.
const tightenPasses = 30

// tighten moves nodes within the layers that are possible for them, each with those that it would
// run into, as long as that makes the edges shorter as a whole.
func (g *Graph) tighten(from [][]int) {
	to := make([][]int, len(from))
	for i, list := range from {
		for _, d := range list {
			to[d] = append(to[d], i)
		}
	}
	for range tightenPasses {
		moved := false
		for i := range g.Nodes {
			for g.shift(i, 1, to, from) || g.shift(i, -1, from, to) {
				moved = true
			}
		}
		if !moved {
			return
		}
	}
}

// shift moves a node by a layer, with those ahead that are right beside it and theirs, if that makes
// the edges shorter.
func (g *Graph) shift(node, by int, ahead, back [][]int) bool {
	with := map[int]bool{node: true}
	gain := 0
	for open := []int{node}; len(open) > 0; {
		i := open[len(open)-1]
		open = open[:len(open)-1]
		if layer := g.Nodes[i].Layer + by; layer < 0 || layer >= g.Layers {
			return false
		}
		for _, j := range ahead[i] {
			if g.Nodes[j].Layer == g.Nodes[i].Layer+by && !with[j] {
				with[j] = true
				open = append(open, j)
			}
		}
	}
	for i := range with {
		for _, j := range ahead[i] {
			if !with[j] {
				gain++
			}
		}
		for _, j := range back[i] {
			if !with[j] {
				gain--
			}
		}
	}
	if gain <= 0 {
		return false
	}
	for i := range with {
		g.Nodes[i].Layer += by
	}
	return true
}

// rank assigns every node the layer after its last dependency, removes edges from from that would
// close a cycle, and returns the nodes in topological order.
func (g *Graph) rank(from [][]int) (order []int) {
	const (
		fresh = iota
		open
		done
	)
	state := make([]int, len(from))
	next := make([]int, len(from)) // next dependency to visit
	for start := range from {
		for path := []int{start}; len(path) > 0 && state[start] != done; {
			i := path[len(path)-1]
			state[i] = open
			if next[i] < len(from[i]) {
				d := from[i][next[i]]
				switch state[d] {
				case fresh:
					path = append(path, d)
				case open:
					from[i] = slices.Delete(from[i], next[i], next[i]+1)
				default:
					next[i]++
				}
				continue
			}
			for _, d := range from[i] {
				g.Nodes[i].Layer = max(g.Nodes[i].Layer, g.Nodes[d].Layer+1)
			}
			g.Layers = max(g.Layers, g.Nodes[i].Layer+1)
			state[i] = done
			order = append(order, i)
			path = path[:len(path)-1]
		}
	}
	return order
}

// critical marks the chain whose tasks have taken longest; of equal ones the one with more tasks,
// and of these the first.
func (g *Graph) critical(from [][]int, order []int, now time.Time) {
	type chain struct {
		took time.Duration
		n    int
		prev int
	}
	longer := func(a, b chain) int { return cmp.Or(cmp.Compare(a.took, b.took), cmp.Compare(a.n, b.n)) }
	best := make([]chain, len(from))
	last := -1
	for _, i := range order {
		best[i] = chain{prev: -1}
		for _, d := range from[i] {
			if c := (chain{best[d].took, best[d].n, d}); best[i].prev < 0 || longer(c, best[i]) > 0 {
				best[i] = c
			}
		}
		best[i].took += max(0, g.Nodes[i].Took(now))
		best[i].n++
		if last < 0 || longer(best[i], best[last]) > 0 {
			last = i
		}
	}
	if last < 0 || best[last].n < 2 {
		return
	}
	for i := last; i >= 0; i = best[i].prev {
		g.Nodes[i].Critical = true
		g.Critical = append(g.Critical, g.Nodes[i].ID)
	}
	slices.Reverse(g.Critical)
}

// Around returns the ids of the tasks at most depth dependencies away from a task in either
// direction, including the task.
func Around(id string, depth int, deps map[string][]string) map[string]bool {
	back := map[string][]string{}
	for t, list := range deps {
		for _, d := range list {
			back[d] = append(back[d], t)
		}
	}
	out := map[string]bool{id: true}
	for _, way := range []map[string][]string{deps, back} {
		level := []string{id}
		seen := map[string]bool{id: true}
		for range depth {
			var next []string
			for _, t := range level {
				for _, d := range way[t] {
					if !seen[d] {
						seen[d], out[d] = true, true
						next = append(next, d)
					}
				}
			}
			level = next
		}
	}
	return out
}

// Near is a part of the graph of dependencies: a task, and tasks that are few dependencies away.
type Near struct {
	ID    string
	Tasks []Task
	// Before and After are, by the id of each of Tasks, how many tasks it depends on and how many
	// depend on it that are not among them.
	Before, After map[string]int
}
