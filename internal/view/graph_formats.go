package view

import (
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// class returns the state of a task in a drawing.
func (t Task) class() string {
	switch {
	case t.Active():
		return "work"
	case t.Status == team.TaskCompleted:
		return "done"
	case t.Status == team.TaskFailed:
		return "failed"
	case t.Stuck:
		return "stuck"
	}
	return "pending"
}

// graphColors has the fill and border of each class.
var graphColors = []struct{ class, fill, border string }{
	{"done", "#e6f4ea", "#1e7e34"}, {"work", "#e0f2fe", "#0369a1"}, {"failed", "#fde8e8", "#b91c1c"}, {"stuck", "#fef3c7", "#b45309"},
	{"pending", "#f3f4f6", "#6b7280"},
}

// Mermaid returns the graph as a Mermaid flowchart.
func (g Graph) Mermaid(now time.Time) string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	names := map[string]string{}
	// Mermaid looks for %%{ (a directive), $$ (a formula), and style with a colon (CSS) in quoted text too.
	escape := strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;", `\`, "#92;", "%", "#37;", ":", "#58;", "&", "#amp;", "$", "#36;")
	for i, n := range g.Nodes {
		names[n.ID] = fmt.Sprintf("n%d", i)
		fmt.Fprintf(&b, "  n%d[\"%s\"]:::%s\n", i, escape.Replace(n.label(now)), n.class())
	}
	for _, e := range g.Edges {
		arrow := "-->"
		if g.onPath(e) {
			arrow = "==>"
		}
		fmt.Fprintf(&b, "  %s %s %s\n", names[e.From], arrow, names[e.To])
	}
	for _, c := range graphColors {
		fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:%s,color:#111\n", c.class, c.fill, c.border)
	}
	return b.String()
}

// DOT returns the graph in the language of Graphviz.
func (g Graph) DOT(now time.Time) string {
	var b strings.Builder
	b.WriteString("digraph tasks {\n  rankdir=LR;\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n")
	quote := func(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }
	colors := map[string][2]string{}
	for _, c := range graphColors {
		colors[c.class] = [2]string{c.fill, c.border}
	}
	for _, n := range g.Nodes {
		c := colors[n.class()]
		fmt.Fprintf(&b, "  %s [label=%s, fillcolor=%q, color=%q];\n", quote(Clean(n.ID)), quote(n.label(now)), c[0], c[1])
	}
	for _, e := range g.Edges {
		style := ""
		if g.onPath(e) {
			style = " [penwidth=2]"
		}
		fmt.Fprintf(&b, "  %s -> %s%s;\n", quote(Clean(e.From)), quote(Clean(e.To)), style)
	}
	b.WriteString("}\n")
	return b.String()
}

// onPath reports whether an edge is on the critical path.
func (g Graph) onPath(e GraphEdge) bool {
	for i := 1; i < len(g.Critical); i++ {
		if g.Critical[i-1] == e.From && g.Critical[i] == e.To {
			return true
		}
	}
	return false
}

// Dimensions of the SVG, in its units.
const (
	svgChar   = 7.5 // width of a character
	svgRow    = 36
	svgBox    = 26
	svgGap    = 48 // between layers
	svgMargin = 12
)

// SVG returns the graph as a self-contained picture.
func (g Graph) SVG(now time.Time) string {
	left, wide := make([]float64, g.Layers), make([]float64, g.Layers)
	for _, n := range g.Nodes {
		wide[n.Layer] = max(wide[n.Layer], svgChar*float64(Width(n.label(now)))+16)
	}
	x := float64(svgMargin)
	for i := range left {
		left[i] = x
		x += wide[i] + svgGap
	}
	width, height := max(x-svgGap, 0)+svgMargin, float64(g.Rows*svgRow+2*svgMargin)
	middle := func(row int) float64 { return svgMargin + float64(row)*svgRow + svgRow/2 }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="ui-monospace, monospace" font-size="12">`+"\n",
		width, height, width, height)
	b.WriteString("<title>Task graph</title>\n<style>.edge{fill:none;stroke:#6b7280}.path{stroke:#111;stroke-width:2}text{fill:#111}")
	for _, c := range graphColors {
		fmt.Fprintf(&b, ".%s{fill:%s;stroke:%s}", c.class, c.fill, c.border)
	}
	b.WriteString("</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n")
	at := map[string]int{}
	for i, n := range g.Nodes {
		at[n.ID] = i
	}
	for _, e := range g.Edges {
		class := "edge"
		if g.onPath(e) {
			class += " path"
		}
		first := g.Nodes[at[e.From]].Layer
		fmt.Fprintf(&b, `<path class="%s" d="M%.1f %.1f`, class, left[first]+wide[first], middle(e.Rows[0]))
		for i := 1; i < len(e.Rows); i++ {
			layer, from, to := first+i, left[first+i]-svgGap, left[first+i]
			fmt.Fprintf(&b, " C%.1f %.1f %.1f %.1f %.1f %.1f", from+svgGap/2, middle(e.Rows[i-1]), from+svgGap/2, middle(e.Rows[i]), to, middle(e.Rows[i]))
			if i < len(e.Rows)-1 {
				fmt.Fprintf(&b, " H%.1f", left[layer]+wide[layer])
			}
		}
		b.WriteString("\"/>\n")
	}
	for _, n := range g.Nodes {
		y := middle(n.Row)
		fmt.Fprintf(&b, `<g><title>%s</title><rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%d" rx="4"/><text x="%.1f" y="%.1f">%s</text></g>`+"\n",
			html.EscapeString(Clean(n.ID+" "+n.Subject)), n.class(), left[n.Layer], y-svgBox/2, wide[n.Layer], svgBox,
			left[n.Layer]+8, y+4, html.EscapeString(n.label(now)))
	}
	b.WriteString("</svg>\n")
	return b.String()
}
