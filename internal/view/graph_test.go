package view

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

var graphNow = time.UnixMilli(1_000_000)

func sampleGraph() ([]Task, map[string][]string) {
	done := func(id, subject string, took time.Duration) Task {
		return Task{ID: id, Subject: subject, Status: team.TaskCompleted, Began: graphNow.Add(-time.Hour), Ended: graphNow.Add(took - time.Hour)}
	}
	return []Task{
			done("1", "lint", 14*time.Second), done("2", "lint", 14*time.Second), done("3", "lint", 14*time.Second), done("4", "unit tests", 16*time.Second),
			{ID: "5", Subject: "integration", Status: team.TaskFailed, Note: "exit 3", Began: graphNow.Add(-time.Hour), Ended: graphNow.Add(-50 * time.Minute)},
			done("6", "guide", 18*time.Second),
			{ID: "7", Subject: "release notes", Status: team.TaskInProgress, Owner: "cart", Began: graphNow.Add(-3 * time.Minute)},
			{ID: "8", Subject: "deploy", Status: team.TaskPending, Stuck: true, Waits: []string{"5", "7"}},
		}, map[string][]string{
			"4": {"1", "2"}, "5": {"3"}, "7": {"4", "6"}, "8": {"5", "7"},
		}
}

func newGraph(t *testing.T, tasks []Task, deps map[string][]string) Graph {
	t.Helper()
	g, err := NewGraph(tasks, deps, graphNow)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A drawing that is too wide gets shorter labels, and keeps times and owners as long as subjects can
// be read.
func TestGraphTextIn(t *testing.T) {
	t.Parallel()
	tasks, deps := sampleGraph()
	g := newGraph(t, tasks, deps)
	for _, at := range []struct {
		width int
		want  string
	}{
		{200, " ✓ 1 lint 14s ───┐\n ✓ 2 lint 14s ───┴── ✓ 4 unit tests 16s ──────┐\n ✓ 6 guide 18s ───────────────────────────────┴── ▸ 7 release notes 3m cart ──┐\n" +
			" ✓ 3 lint 14s ────── ✗ 5 integration exit 3 ──────────────────────────────────┴── ! 8 deploy"},
		{91, " ✓ 1 lint 14s ───┐\n ✓ 2 lint 14s ───┴── ✓ 4 unit tests 16s ──────┐\n ✓ 6 guide 18s ───────────────────────────────┴── ▸ 7 release not… 3m cart ──┐\n" +
			" ✓ 3 lint 14s ────── ✗ 5 integration exit 3 ─────────────────────────────────┴── ! 8 deploy"},
		{66, ""},
		{34, ""},
	} {
		lines := g.TextIn(graphNow, at.width)
		if got := strings.Join(lines[:len(lines)-2], "\n"); widest(lines) > at.width || at.want != "" && got != at.want {
			t.Errorf("for %d columns:\n%s", at.width, got)
		}
		for _, x := range tasks {
			if !strings.Contains(strings.Join(lines, "\n"), x.Sign()+" "+x.ID) {
				t.Errorf("task %s is not in the drawing of %d columns", x.ID, at.width)
			}
		}
	}
}

// A drawing that nobody could read is refused and takes no time.
func TestGraphTooLarge(t *testing.T) {
	t.Parallel()
	tasks, deps := make([]Task, 300), map[string][]string{}
	for i := range tasks {
		tasks[i].ID = fmt.Sprint(i)
		for j := range i {
			deps[tasks[i].ID] = append(deps[tasks[i].ID], fmt.Sprint(j))
		}
	}
	if _, err := NewGraph(tasks, deps, graphNow); !errors.Is(err, ErrLargeGraph) {
		t.Errorf("error %v, want %v", err, ErrLargeGraph)
	}
}

func TestGraphText(t *testing.T) {
	t.Parallel()
	tasks, deps := sampleGraph()
	got := strings.Join(newGraph(t, tasks, deps).Text(graphNow), "\n") + "\n"
	want := ` ✓ 1 lint 14s ───┐
 ✓ 2 lint 14s ───┴── ✓ 4 unit tests 16s ──────┐
 ✓ 6 guide 18s ───────────────────────────────┴── ▸ 7 release notes 3m cart ──┐
 ✓ 3 lint 14s ────── ✗ 5 integration exit 3 ──────────────────────────────────┴── ! 8 deploy

 critical path 3-5-8
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n(-want +got):\n%s", got, diff)
	}
}

// Two edges that exchange their rows are drawn apart.
func TestGraphExchange(t *testing.T) {
	t.Parallel()
	c := channel{tracks: []track{{from: 0, to: []int{1}}, {from: 1, to: []int{0}}}}
	if c.columns() {
		t.Errorf("two that arrive where the other leaves: %+v", c.tracks)
	}
	c = channel{tracks: []track{{from: 0, to: []int{3}}, {from: 2, to: []int{1}}}}
	if !c.columns() || c.tracks[0].column == c.tracks[1].column {
		t.Errorf("two that cross: %+v", c.tracks)
	}
}

// randomGraph has n tasks, each with up to three dependencies before it.
func randomGraph(r *rand.Rand, n int) ([]Task, map[string][]string) {
	tasks, deps := make([]Task, n), map[string][]string{}
	for i := range tasks {
		id := fmt.Sprint(i + 1)
		tasks[i] = Task{ID: id, Subject: "a <b> & \"c\"", Status: team.TaskPending}
		for range r.IntN(3) {
			if i > 0 {
				deps[id] = append(deps[id], fmt.Sprint(1+max(0, i-1-r.IntN(min(i, 12)))))
			}
		}
	}
	return tasks, deps
}

// Whatever the tasks depend on, no two have one place, every edge leads to the right, and
// the same tasks give the same drawing.
func TestGraphLayout(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 3, 5, 10, 20, 40, 80, 200} {
		tasks, deps := randomGraph(r, n)
		if n == 5 { // what is imported may be damaged
			deps["1"], deps["2"], deps["3"] = []string{"1", "5", "99"}, []string{"1"}, []string{"2", "2"}
			deps["5"] = []string{"3"}
		}
		g := newGraph(t, tasks, deps)
		taken, layer := map[[2]int]string{}, map[string]int{}
		for _, x := range g.Nodes {
			layer[x.ID] = x.Layer
		}
		for i, lanes := range g.lanes {
			for j, l := range lanes {
				if at := [2]int{i, l.row}; l.row < 0 || l.row >= g.Rows || taken[at] != "" || j > 0 && lanes[j-1].row >= l.row {
					t.Errorf("%d tasks: lane %d of layer %d in row %d of %d", n, j, i, l.row, g.Rows)
				} else {
					taken[at] = "x"
				}
			}
		}
		for _, e := range g.Edges {
			if from, to := layer[e.From], layer[e.To]; from >= to || len(e.Rows) != to-from+1 {
				t.Errorf("%d tasks: the edge %s to %s leads from layer %d to %d over %v", n, e.From, e.To, from, to, e.Rows)
			}
		}
		if again := newGraph(t, tasks, deps); !reflect.DeepEqual(again, g) {
			t.Errorf("%d tasks: another drawing the second time", n)
		}
		if lines := g.Text(graphNow); n > 0 && len(lines) < g.Rows/2 {
			t.Errorf("%d tasks: %d lines for %d rows", n, len(lines), g.Rows)
		}
		wellFormed(t, g.SVG(graphNow))
	}
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
}

func TestGraphFormats(t *testing.T) {
	t.Parallel()
	tasks, deps := sampleGraph()
	tasks[0].Subject = "x\"]; click <script>\x1b[31m `y` \\"
	tasks[2].Subject = "%%{init: {}}%% $$x$$ &lt;"
	g := newGraph(t, tasks, deps)
	mermaid := g.Mermaid(graphNow)
	for _, want := range []string{"flowchart LR\n", `n0["✓ 1 x#quot;]; click #lt;script#gt; #96;y#96; #92; 14s"]:::done`, `#37;#37;{init#58; {}}#37;#37; #36;#36;x#36;#36; #amp;lt; `, "  n2 ==> n4\n", "  n0 --> n3\n", "classDef failed "} {
		if !strings.Contains(mermaid, want) {
			t.Errorf("no %q in %s", want, mermaid)
		}
	}
	dot := g.DOT(graphNow)
	for _, want := range []string{"digraph tasks {", `"1" [label="✓ 1 x\"]; click <script>`, `"3" -> "5" [penwidth=2];`, `"1" -> "4";`} {
		if !strings.Contains(dot, want) {
			t.Errorf("no %q in %s", want, dot)
		}
	}
	svg := g.SVG(graphNow)
	wellFormed(t, svg)
	if strings.Contains(svg, "<script") || strings.Contains(svg, "\x1b") {
		t.Errorf("a subject is not escaped: %s", svg)
	}
	if diff := cmp.Diff([]string{"3", "5", "8"}, g.Critical); diff != "" {
		t.Errorf("critical path: %s", diff)
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	_, deps := sampleGraph()
	want := map[string]bool{"4": true, "1": true, "2": true, "7": true}
	if diff := cmp.Diff(want, Around("4", 1, deps)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestGraphRows checks that the layout has no row without a task or an edge.
func TestGraphRows(t *testing.T) {
	t.Parallel()
	tasks := make([]Task, 14)
	for i := range tasks {
		tasks[i] = Task{ID: fmt.Sprint(i + 1), Subject: "x", Status: team.TaskPending}
	}
	g := newGraph(t, tasks, map[string][]string{"2": {"1"}, "3": {"1"}, "4": {"2", "3"}})
	used, last := map[int]bool{}, 0
	for _, l := range g.lanes {
		for _, x := range l {
			used[x.row], last = true, max(last, x.row)
		}
	}
	if len(used) != last+1 {
		t.Errorf("%d of %d rows are used", len(used), last+1)
	}
}
