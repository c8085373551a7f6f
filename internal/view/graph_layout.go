package view

import (
	"cmp"
	"slices"
)

const (
	orderStarts    = 4  // orders that are begun with
	orderSweeps    = 60 // passes through the layers to reduce crossings, for each
	orderPatience  = 10 // of them without any use
	exchangePasses = 200
	siftPasses     = 20
	rowSweeps      = 6 // passes to straighten edges
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

// order permutes the lanes of each layer by their neighbours, forwards and backwards, by the mean
// and by the median of the neighbours' positions, exchanges lanes beside each other, and keeps the
// best order found.
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
	for start := range orderStarts {
		if start > 0 { // the order of the tasks comes first
			walk(pos, before, behind, start == 2, start == 3)
		}
		for sweep, since := 0, 0; sweep < orderSweeps && since < orderPatience && crossings > 0; sweep++ {
			for step := 1; step < g.Layers; step++ {
				layer, near, beside := step, before, step-1
				if sweep%2 == 1 {
					layer, near = g.Layers-1-step, behind
					beside = layer + 1
				}
				sortLayer(pos[layer], near[layer], pos[beside], sweep%4 < 2)
			}
			exchange(pos, before, behind, sweep%4 >= 2)
			since++
			if n := g.crossings(pos); n < crossings {
				best, crossings, since = clonePlaces(pos), n, 0
			}
		}
	}
	sift(best, before, behind)
	g.Crossings = g.crossings(best)
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

// walk orders the lanes as a walk along the edges meets them: what belongs together is together.
// It begins with each lane that it has not met, from the first layer on or from the last.
func walk(pos [][]int, before, behind [][][]int, last, reverse bool) {
	type at struct{ layer, lane int }
	count, met := make([]int, len(pos)), map[at]bool{}
	var open []at
	for i := range pos {
		layer := i
		if last {
			layer = len(pos) - 1 - i
		}
		for lane := range pos[layer] {
			for open = append(open, at{layer, lane}); len(open) > 0; {
				x := open[len(open)-1]
				open = open[:len(open)-1]
				if met[x] {
					continue
				}
				met[x] = true
				pos[x.layer][x.lane] = count[x.layer]
				count[x.layer]++
				for _, lane := range before[x.layer][x.lane] {
					open = append(open, at{x.layer - 1, lane})
				}
				for _, lane := range behind[x.layer][x.lane] {
					open = append(open, at{x.layer + 1, lane})
				}
			}
		}
	}
	if reverse {
		for _, p := range pos {
			for i := range p {
				p[i] = len(p) - 1 - p[i]
			}
		}
	}
}

// exchange exchanges lanes beside each other as long as that lessens the crossings of their edges;
// level exchanges those, too, for which it is the same, which leads out of some dead ends.
func exchange(pos [][]int, before, behind [][][]int, level bool) {
	for range exchangePasses {
		better := false
		for layer := range pos {
			at := lanesAt(pos[layer])
			for i := range len(at) - 1 {
				a, b := at[i], at[i+1]
				if more := below(pos, before, behind, layer, a, b); more < 0 || level && more == 0 {
					at[i], at[i+1] = b, a
					pos[layer][a], pos[layer][b] = i+1, i
					better = better || more < 0
				}
			}
		}
		if !better {
			return
		}
	}
}

// sift moves each lane to the place in its layer where its edges cross the fewest others, as long
// as that lessens the crossings.
func sift(pos [][]int, before, behind [][][]int) {
	for range siftPasses {
		better := false
		for layer, p := range pos {
			at := lanesAt(p)
			for lane := range p {
				from := slices.Index(at, lane)
				to, least := from, 0
				for sum, i := 0, from+1; i < len(at); i++ {
					if sum += below(pos, before, behind, layer, lane, at[i]); sum < least {
						to, least = i, sum
					}
				}
				for sum, i := 0, from-1; i >= 0; i-- {
					if sum += below(pos, before, behind, layer, at[i], lane); sum < least {
						to, least = i, sum
					}
				}
				if to != from {
					at = slices.Insert(slices.Delete(at, from, from+1), to, lane)
					better = true
				}
			}
			for i, lane := range at {
				p[lane] = i
			}
		}
		if !better {
			return
		}
	}
}

// lanesAt returns the lane at each position.
func lanesAt(pos []int) []int {
	at := make([]int, len(pos))
	for lane, x := range pos {
		at[x] = lane
	}
	return at
}

// below returns how many crossings are added when a lane that is above another comes to be below
// it.
func below(pos [][]int, before, behind [][][]int, layer, a, b int) (n int) {
	if layer > 0 {
		now, then := crossed(before[layer][a], before[layer][b], pos[layer-1])
		n += then - now
	}
	if layer+1 < len(pos) {
		now, then := crossed(behind[layer][a], behind[layer][b], pos[layer+1])
		n += then - now
	}
	return n
}

// crossed counts the crossings of the edges of two lanes, the first above the second and below it.
func crossed(a, b []int, pos []int) (above, below int) {
	for _, x := range a {
		for _, y := range b {
			switch {
			case pos[x] > pos[y]:
				above++
			case pos[x] < pos[y]:
				below++
			}
		}
	}
	return above, below
}

func clonePlaces(pos [][]int) [][]int {
	out := make([][]int, len(pos))
	for i, p := range pos {
		out[i] = slices.Clone(p)
	}
	return out
}

// sortLayer sets the positions of the lanes of a layer by the median of their neighbours' positions,
// or their mean; a lane without neighbours stays about where it is.
func sortLayer(pos []int, near [][]int, beside []int, median bool) {
	want := make([]float64, len(pos))
	lanes := make([]int, len(pos))
	for i := range pos {
		lanes[i], want[i] = i, float64(pos[i])
		n := len(near[i])
		if n == 0 {
			continue
		}
		list := make([]int, n)
		sum := 0
		for j, x := range near[i] {
			list[j] = beside[x]
			sum += beside[x]
		}
		want[i] = float64(sum) / float64(n)
		if median && n > 2 {
			slices.Sort(list)
			want[i] = float64(list[(n-1)/2]+list[n/2]) / 2
		}
	}
	slices.SortStableFunc(lanes, func(a, b int) int { return cmp.Or(cmp.Compare(want[a], want[b]), cmp.Compare(pos[a], pos[b])) })
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
	var used []int
	for _, l := range g.lanes {
		for _, x := range l {
			used = append(used, x.row)
		}
	}
	slices.Sort(used)
	used = slices.Compact(used)
	for _, l := range g.lanes {
		for j := range l { // rows that no lane uses are left out
			l[j].row, _ = slices.BinarySearch(used, l[j].row)
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
