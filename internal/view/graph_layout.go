package view

import (
	"cmp"
	"slices"
)

const (
	orderSweeps = 12 // passes through the layers to reduce crossings
	rowSweeps   = 6  // passes to straighten edges
)

// arrange positions the nodes: it adds a lane to every layer that an edge passes, orders the lanes
// of each layer to reduce crossings, and assigns rows.
func (g *Graph) arrange(from [][]int) {
	g.lanes = make([][]lane, g.Layers)
	place := make([]int, len(g.Nodes))
	for i, n := range g.Nodes {
		place[i] = len(g.lanes[n.Layer])
		g.lanes[n.Layer] = append(g.lanes[n.Layer], lane{node: i})
	}
	for i := range g.Nodes {
		for _, d := range from[i] {
			e := len(g.Edges)
			g.Edges = append(g.Edges, GraphEdge{From: g.Nodes[d].ID, To: g.Nodes[i].ID})
			at := place[d]
			for layer := g.Nodes[d].Layer; layer < g.Nodes[i].Layer; layer++ {
				to := place[i]
				if layer+1 < g.Nodes[i].Layer {
					to = len(g.lanes[layer+1])
					g.lanes[layer+1] = append(g.lanes[layer+1], lane{node: -1})
				}
				g.hops = append(g.hops, hop{layer, at, to, e})
				at = to
			}
		}
	}
	g.order()
	g.level()
	for layer, lanes := range g.lanes {
		for _, l := range lanes {
			g.Rows = max(g.Rows, l.row+1)
			if l.node >= 0 {
				g.Nodes[l.node].Layer, g.Nodes[l.node].Row = layer, l.row
			}
		}
	}
	for _, h := range g.hops { // the hops of an edge are in order
		e := &g.Edges[h.edge]
		if e.Rows == nil {
			e.Rows = []int{g.lanes[h.layer][h.from].row}
		}
		e.Rows = append(e.Rows, g.lanes[h.layer+1][h.to].row)
	}
}

// neighbours returns, for each lane of each layer, the positions of the connected lanes in the
// previous and the next layer.
func (g *Graph) neighbours() (before, behind [][][]int) {
	before, behind = make([][][]int, g.Layers), make([][][]int, g.Layers)
	for i, l := range g.lanes {
		before[i], behind[i] = make([][]int, len(l)), make([][]int, len(l))
	}
	for _, h := range g.hops {
		behind[h.layer][h.from] = append(behind[h.layer][h.from], h.to)
		before[h.layer+1][h.to] = append(before[h.layer+1][h.to], h.from)
	}
	return before, behind
}

// order permutes the lanes of each layer by the mean position of their neighbours, forwards and
// backwards, and keeps the best order found.
func (g *Graph) order() {
	before, behind := g.neighbours()
	pos := make([][]int, g.Layers) // of each lane in its layer
	for i, l := range g.lanes {
		pos[i] = make([]int, len(l))
		for j := range l {
			pos[i][j] = j
		}
	}
	best, crossings := clonePlaces(pos), g.crossings(pos)
	for sweep := 0; sweep < orderSweeps && crossings > 0; sweep++ {
		for step := 1; step < g.Layers; step++ {
			layer, near, beside := step, before, step-1
			if sweep%2 == 1 {
				layer, near = g.Layers-1-step, behind
				beside = layer + 1
			}
			sortLayer(pos[layer], near[layer], pos[beside])
		}
		if n := g.crossings(pos); n < crossings {
			best, crossings = clonePlaces(pos), n
		}
	}
	g.Crossings = crossings
	for i, l := range g.lanes {
		sorted := make([]lane, len(l))
		for j := range l {
			sorted[best[i][j]] = l[j]
		}
		g.lanes[i] = sorted
	}
	for i, h := range g.hops {
		g.hops[i].from, g.hops[i].to = best[h.layer][h.from], best[h.layer+1][h.to]
	}
}

func clonePlaces(pos [][]int) [][]int {
	out := make([][]int, len(pos))
	for i, p := range pos {
		out[i] = slices.Clone(p)
	}
	return out
}

// sortLayer sets the positions of the lanes of a layer by the mean of their neighbours' positions;
// a lane without neighbours stays about where it is.
func sortLayer(pos []int, near [][]int, beside []int) {
	mean := make([]float64, len(pos))
	lanes := make([]int, len(pos))
	for i := range pos {
		lanes[i], mean[i] = i, float64(pos[i])
		if n := len(near[i]); n > 0 {
			sum := 0
			for _, x := range near[i] {
				sum += beside[x]
			}
			mean[i] = float64(sum) / float64(n)
		}
	}
	slices.SortStableFunc(lanes, func(a, b int) int { return cmp.Or(cmp.Compare(mean[a], mean[b]), cmp.Compare(pos[a], pos[b])) })
	for at, i := range lanes {
		pos[i] = at
	}
}

// crossings counts the pairs of hops that cross.
func (g *Graph) crossings(pos [][]int) (n int) {
	perLayer := make([][][2]int, g.Layers)
	for _, h := range g.hops {
		perLayer[h.layer] = append(perLayer[h.layer], [2]int{pos[h.layer][h.from], pos[h.layer+1][h.to]})
	}
	for layer, list := range perLayer {
		if len(list) < 2 {
			continue
		}
		slices.SortFunc(list, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
		// Each hop crosses the earlier ones that end further down: a Fenwick tree counts the ends.
		tree := make([]int, len(pos[layer+1])+1)
		for seen, e := range list {
			upTo := 0
			for i := e[1] + 1; i > 0; i -= i & -i {
				upTo += tree[i]
			}
			n += seen - upTo
			for i := e[1] + 1; i < len(tree); i += i & -i {
				tree[i]++
			}
		}
	}
	return n
}

// level assigns rows to the lanes: in the order of their layer, and as close to their neighbours'
// rows as possible.
func (g *Graph) level() {
	for _, l := range g.lanes {
		for j := range l {
			l[j].row = j
		}
	}
	before, behind := g.neighbours()
	for sweep := range rowSweeps {
		for step := 1; step < g.Layers; step++ {
			layer, near, beside := step, before, step-1
			if sweep%2 == 1 {
				layer, near = g.Layers-1-step, behind
				beside = layer + 1
			}
			want := make([]int, len(g.lanes[layer]))
			for j, l := range g.lanes[layer] {
				want[j] = l.row
				if n := near[layer][j]; len(n) > 0 { // the rows of a layer increase with its positions
					sorted := slices.Sorted(slices.Values(n))
					want[j] = g.lanes[beside][sorted[(len(sorted)-1)/2]].row
				}
			}
			for j, row := range spread(want) {
				g.lanes[layer][j].row = row
			}
		}
	}
	top := 0
	for i, l := range g.lanes {
		if i == 0 || l[0].row < top {
			top = l[0].row
		}
	}
	for _, l := range g.lanes {
		for j := range l {
			l[j].row -= top
		}
	}
}

// spread returns increasing rows close to the wanted ones: rows that collide move together, as a
// block around the median of the wanted ones.
func spread(want []int) []int {
	type block struct{ wants []int } // minus their positions in the layer
	var blocks []block
	row := func(b block) int {
		sorted := slices.Sorted(slices.Values(b.wants))
		return sorted[(len(sorted)-1)/2]
	}
	for i, w := range want {
		blocks = append(blocks, block{[]int{w - i}})
		for n := len(blocks); n > 1 && row(blocks[n-2]) > row(blocks[n-1]); n = len(blocks) {
			blocks[n-2].wants = append(blocks[n-2].wants, blocks[n-1].wants...)
			blocks = blocks[:n-1]
		}
	}
	var out []int
	for _, b := range blocks {
		r := row(b)
		for range b.wants {
			out = append(out, r+len(out))
		}
	}
	return out
}
