package view

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

const (
	graphSubject = 28 // width of a subject in a drawing
	graphNote    = 20 // width of the reason of a failure
)

// Sign returns a task's state as one character.
func (t Task) Sign() string {
	switch {
	case t.Active():
		return "▸"
	case t.Status == team.TaskCompleted:
		return "✓"
	case t.Status == team.TaskFailed:
		return "✗"
	case t.Stuck:
		return "!"
	}
	return "·"
}

// label returns the one-line description of a task in a drawing.
func (n GraphNode) label(now time.Time) string { return n.labelIn(now, graphSubject, graphNote) }

// labelIn is label with the widths of the subject and of the reason of a failure.
func (n GraphNode) labelIn(now time.Time, subject, note int) string {
	parts := []string{n.named(subject)}
	switch {
	case n.Active():
		parts = append(parts, Age(n.Took(now)), Clean(n.Owner))
	case n.Status == team.TaskCompleted:
		parts = append(parts, Duration(n.Took(now)))
	case n.Status == team.TaskFailed:
		parts = append(parts, Cut(Clean(n.Note), note))
	}
	return n.folded(strings.Join(parts, " "))
}

// name returns the sign and the name of a task in a drawing.
func (n GraphNode) name(subject int) string { return n.folded(n.named(subject)) }

func (n GraphNode) named(subject int) string {
	return n.Sign() + " " + Clean(n.ID) + " " + Cut(Clean(n.Subject), subject)
}

// folded adds the counts of the edges that are not drawn, each on the side on which they would be.
func (n GraphNode) folded(text string) string {
	text = strings.TrimSpace(text)
	if n.Before > 0 {
		text = "+" + strconv.Itoa(n.Before) + " " + text
	}
	if n.After > 0 {
		text += " +" + strconv.Itoa(n.After)
	}
	return text
}

// Fold sets how many dependencies and dependents of each task are not in the graph.
func (g *Graph) Fold(before, after map[string]int) {
	for i, n := range g.Nodes {
		g.Nodes[i].Before, g.Nodes[i].After = before[n.ID], after[n.ID]
	}
}

// GraphLines is a graph as lines of text, with the place of the label of each task.
type GraphLines struct {
	Lines []string
	Spots map[string]Spot // by the id of the task
}

// Spot is the place of a label: its line, and the cells from Left up to Right.
type Spot struct{ Line, Left, Right int }

// Text draws the graph with box-drawing characters, one line per row. Where edges only cross, the
// horizontal one has a gap.
func (g Graph) Text(now time.Time) []string {
	return g.text(func(n GraphNode) string { return n.label(now) }).Lines
}

// TextIn is Text for a width: where the labels are too long for it, subjects and the reasons of
// failures get shorter, then times, owners and reasons are left out. A graph of many layers may be
// wider even so.
func (g Graph) TextIn(now time.Time, width int) []string { return g.DrawIn(now, width).Lines }

// DrawIn is TextIn with the places of the tasks.
func (g Graph) DrawIn(now time.Time, width int) GraphLines {
	const readable = 12
	d := g.text(func(n GraphNode) string { return n.label(now) })
	for subject := graphSubject - 1; widest(d.Lines) > width && subject >= readable; subject-- {
		d = g.text(func(n GraphNode) string { return n.labelIn(now, subject, min(subject, graphNote)) })
	}
	for subject := graphSubject; widest(d.Lines) > width && subject >= 0; subject-- {
		d = g.text(func(n GraphNode) string { return n.name(subject) })
	}
	return d
}

func widest(lines []string) (n int) {
	for _, l := range lines {
		n = max(n, Width(l))
	}
	return n
}

// text draws the graph with a label for each node.
func (g Graph) text(label func(GraphNode) string) GraphLines {
	channels := make([]channel, max(0, g.Layers-1))
	line := func(_, row int) int { return row }
	height := g.Rows
	if !g.route(channels, line) {
		// Two edges that exchange their rows would overlap: every second layer moves down by half a
		// row.
		line = func(layer, row int) int { return 2*row + layer%2 }
		height = 2 * g.Rows
		g.route(channels, line)
	}
	out := make([]strings.Builder, height)
	spots := make(map[string]Spot, len(g.Nodes))
	left := 0 // of the layer
	for layer, lanes := range g.lanes {
		wide := 0
		for _, l := range lanes {
			if l.node >= 0 {
				wide = max(wide, Width(label(g.Nodes[l.node]))+2)
			}
		}
		cells := make([]string, height)
		for place, l := range lanes {
			fill, text := " ", ""
			if layer < len(channels) && channels[layer].leaves[place] {
				fill = "─"
			}
			if l.node >= 0 {
				text = " " + label(g.Nodes[l.node]) + " "
				spots[g.Nodes[l.node].ID] = Spot{line(layer, l.row), left + 1, left + Width(text) - 1}
			}
			cells[line(layer, l.row)] = text + strings.Repeat(fill, wide-Width(text))
		}
		for i := range out {
			out[i].WriteString(Pad(cells[i], wide))
			if layer < len(channels) {
				out[i].WriteString(channels[layer].text(i))
			}
		}
		left += wide
		if layer < len(channels) {
			left += channels[layer].wide
		}
	}
	lines := make([]string, 0, height+2)
	at := make([]int, height) // of each line, without the empty ones
	for i := range out {
		at[i] = len(lines)
		if s := strings.TrimRight(out[i].String(), " "); s != "" {
			lines = append(lines, s)
		}
	}
	for id, s := range spots {
		spots[id] = Spot{at[s.Line], s.Left, s.Right}
	}
	if len(g.Critical) > 0 {
		lines = append(lines, "", " critical path "+Clean(strings.Join(g.Critical, "-")))
	}
	return GraphLines{lines, spots}
}

// channel is the space between two layers, in which edges change rows. All edges of one source
// share a track, a vertical line.
type channel struct {
	tracks []track
	wide   int
	leaves map[int]bool // places of the layer from which an edge leaves
}

type track struct {
	from   int   // line
	to     []int // lines
	column int   // -1 for an edge that stays on its line
}

func (t track) span() (top, bottom int) {
	return min(t.from, slices.Min(t.to)), max(t.from, slices.Max(t.to))
}

// route fills the channels; ok is false if edges cannot be kept apart.
func (g Graph) route(channels []channel, line func(layer, row int) int) (ok bool) {
	for layer := range channels {
		c := channel{leaves: map[int]bool{}}
		index := map[int]int{}
		for _, h := range g.hops {
			if h.layer != layer {
				continue
			}
			i, known := index[h.from]
			if !known {
				i = len(c.tracks)
				index[h.from] = i
				c.tracks = append(c.tracks, track{from: line(layer, g.lanes[layer][h.from].row)})
				c.leaves[h.from] = true
			}
			c.tracks[i].to = append(c.tracks[i].to, line(layer+1, g.lanes[layer+1][h.to].row))
		}
		slices.SortFunc(c.tracks, func(a, b track) int { return a.from - b.from })
		if !c.columns() {
			return false
		}
		channels[layer] = c
	}
	return true
}

// columns assigns columns to the tracks: a track is left of every other one that arrives on the
// line on which it leaves, and tracks in one column do not touch.
func (c *channel) columns() (ok bool) {
	used, left := 0, 0
	for i, t := range c.tracks {
		c.tracks[i].column = -1
		if top, bottom := t.span(); top < bottom {
			c.tracks[i].column = -2 // not assigned yet
			left++
		}
	}
	for ; left > 0; left-- {
		next, column := -1, 0
		for i, t := range c.tracks {
			if t.column != -2 {
				continue
			}
			free, at := true, 0
			for j, other := range c.tracks {
				if i == j || other.column == -1 || !slices.Contains(t.to, other.from) {
					continue
				}
				free = free && other.column >= 0
				at = max(at, other.column+1)
			}
			if free {
				next, column = i, at
				break
			}
		}
		if next < 0 {
			return false
		}
		top, bottom := c.tracks[next].span()
		for slices.ContainsFunc(c.tracks, func(t track) bool {
			a, b := t.span()
			return t.column == column && a <= bottom && top <= b
		}) {
			column++
		}
		c.tracks[next].column = column
		used = max(used, column+1)
	}
	c.wide = 2*used + 3
	return true
}

// Parts of a box-drawing character.
const (
	up = 1 << iota
	down
	toLeft
	toRight
)

var boxes = [16]string{
	0: " ", up: "│", down: "│", up | down: "│", toLeft: "─", toRight: "─", toLeft | toRight: "─",
	up | toLeft: "┘", up | toRight: "└", down | toLeft: "┐", down | toRight: "┌",
	up | down | toLeft: "┤", up | down | toRight: "├", up | toLeft | toRight: "┴", down | toLeft | toRight: "┬", 15: "┼",
}

// text returns one line of the channel.
func (c channel) text(line int) string {
	cells := make([]int, c.wide)
	across := func(from, to int) {
		for x := from; x < to; x++ {
			cells[x] |= toLeft | toRight
		}
	}
	at := func(t track) int { return 2 + 2*t.column }
	for _, t := range c.tracks {
		switch {
		case t.column < 0:
			if t.from == line {
				across(0, c.wide)
			}
		default:
			if t.from == line {
				across(0, at(t))
				cells[at(t)] |= toLeft
			}
			if slices.Contains(t.to, line) {
				cells[at(t)] |= toRight
				across(at(t)+1, c.wide)
			}
		}
	}
	for _, t := range c.tracks {
		top, bottom := t.span()
		if t.column < 0 || line < top || line > bottom {
			continue
		}
		if t.from != line && !slices.Contains(t.to, line) {
			cells[at(t)] = up | down // whatever crosses it
			continue
		}
		if line > top {
			cells[at(t)] |= up
		}
		if line < bottom {
			cells[at(t)] |= down
		}
	}
	var b strings.Builder
	for _, x := range cells {
		b.WriteString(boxes[x])
	}
	return b.String()
}
