package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// chain is a team of n tasks, each of which depends on the one before it.
func chain(n int) view.Snapshot {
	s := view.Snapshot{Team: "demo"}
	for i := range n {
		t := view.Task{ID: fmt.Sprint(i + 1), Subject: fmt.Sprintf("step %d", i+1), Status: team.TaskPending}
		if i > 0 {
			t.DependsOn = []string{fmt.Sprint(i)}
		}
		s.Tasks = append(s.Tasks, t)
	}
	return s
}

// diamond has tasks in three layers: 1 and 2, then 3 and 4, then 5.
func diamond() view.Snapshot {
	s := chain(5)
	for i, deps := range [][]string{nil, nil, {"1"}, {"1", "2"}, {"3", "4"}} {
		s.Tasks[i].DependsOn = deps
	}
	s.Tasks[2].Status, s.Tasks[2].Began, s.Tasks[2].Owner = team.TaskInProgress, ago(119*time.Second), "ann"
	return s
}

// graphOf is a running screen with the graph of a team.
func graphOf(t *testing.T, s view.Snapshot, cols, rows int) *run {
	t.Helper()
	m := shownOf(s, cols, rows)
	m.at, m.tasksAs, m.cursor = inTasks, "graph", "task:1"
	m.refresh()
	ctx, cancel := context.WithCancel(t.Context())
	r := &run{
		ui: &UI{}, m: m, term: &paper{cols, rows}, ctx: ctx, teamCtx: ctx, changes: make(chan func(*model), 64), running: map[string]bool{}, again: map[string]doing{},
		gaze: newGaze(), crash: make(chan any, 1),
	}
	t.Cleanup(func() {
		cancel()
		r.all.Wait()
	})
	return r
}

func (r *run) types(keys string) {
	for k := range strings.FieldsSeq(keys) {
		r.event(term.Event{Kind: term.Key, Key: k, At: r.m.now})
		if r.m.news > 0 {
			r.m.refresh()
			r.m.news = 0
		}
	}
}

// The keys move a selection from node to node, which is marked and what actions are about.
func TestGraphSelection(t *testing.T) {
	t.Parallel()
	r := graphOf(t, diamond(), 100, 20)
	m := r.m
	for _, step := range []struct{ keys, want string }{
		{"", "1"}, {"j", "2"}, {"j", "3"}, {"k", "2"}, {"l", "4"}, {"right", "5"}, {"l", "5"}, {"left", "4"}, {"h", "2"}, {"h", "2"}, {"k", "1"}, {"k", "1"}, {"G", "5"}, {"g", "1"}, {"down", "2"},
	} {
		r.types(step.keys)
		if m.cursor != "task:"+step.want {
			t.Fatalf("after %q: %s is selected, want %s\n%s", step.keys, m.cursor, step.want, text(m.draw()))
		}
		f := m.draw()
		marked := 0
		for y, l := range f.lines {
			if i := strings.Index(strip(l), "›"); i >= 0 {
				marked++
				if !strings.Contains(strip(l)[i:], " "+step.want+" step") {
					t.Errorf("%q is marked, want %s", l, step.want)
				}
				for _, g := range f.regions {
					if g.id == m.cursor && g.y != y {
						t.Errorf("the mouse finds %s in line %d, not %d", g.id, g.y, y)
					}
				}
			}
		}
		if marked != 1 {
			t.Errorf("%d nodes are marked:\n%s", marked, text(f))
		}
	}
	if foot := strip(m.foot(false)); !strings.Contains(foot, "e edit the subject") {
		t.Errorf("the last line does not name what can be done: %q", foot)
	}
	if got := m.target(); got.Task == nil || got.Task.ID != "2" {
		t.Errorf("actions are about %+v", got)
	}
	golden(t, "graph-100x20.txt", text(m.draw()))
}

// Above a minute an age is drawn anew each minute only, so it shows no seconds.
func TestGraphAges(t *testing.T) {
	t.Parallel()
	m := graphOf(t, diamond(), 100, 20).m
	if got := text(m.draw()); !strings.Contains(got, "step 3 1m ann") {
		t.Errorf("no age in minutes:\n%s", got)
	}
}

// At every size the selected node is visible.
func TestGraphKeepsTheSelectionVisible(t *testing.T) {
	t.Parallel()
	for _, s := range []view.Snapshot{chain(30), diamond(), wideGraph(39)} {
		for _, size := range [][2]int{{200, 50}, {80, 24}, {40, 10}, {20, 5}, {9, 3}} {
			r := graphOf(t, s, size[0], size[1])
			m := r.m
			for range len(s.Tasks) + 1 {
				got := text(m.draw())
				at := strings.Index(got, "›")
				if at < 0 || size[0] >= 20 && !strings.Contains(got[at:], " "+strings.TrimPrefix(m.cursor, "task:")) {
					t.Fatalf("%v: %s is not visible:\n%s", size, m.cursor, got)
				}
				r.types("j")
			}
		}
	}
}

// wideGraph has n tasks that depend on the first one.
func wideGraph(n int) view.Snapshot {
	s := chain(n)
	for i := range s.Tasks {
		s.Tasks[i].DependsOn = nil
		if i > 0 {
			s.Tasks[i].DependsOn = []string{"1"}
		}
	}
	return s
}

// nearby is a team whose graph is read around a task.
type nearby struct {
	fuzzed
	asked []string
}

func (n *nearby) Near(_ context.Context, id string) (view.Near, error) {
	n.asked = append(n.asked, id)
	x := view.Near{ID: id, Before: map[string]int{}, After: map[string]int{id: 12}}
	x.Tasks = []view.Task{{ID: id, Subject: "hub", Status: team.TaskPending}}
	if id != "900" {
		x.Tasks = append(x.Tasks, view.Task{ID: "900", Subject: "unread", Status: team.TaskPending, DependsOn: []string{id, "8"}})
		x.Before["900"] = 1
	}
	return x, nil
}

// A graph of many tasks is read around the selected one, and shows how many edges lead out of it.
// What it shows needs not be among the tasks that the snapshot has.
func TestGraphOfManyTasks(t *testing.T) {
	t.Parallel()
	s := chain(60)
	s.Whole = &view.Counts{Total: 413, Ready: 413}
	r := graphOf(t, s, 100, 20)
	source := &nearby{}
	r.team = source
	look := func() string {
		r.want()
		for r.running["near"] {
			r.apply(<-r.changes)
		}
		r.m.refresh()
		return text(r.m.draw())
	}
	got := look()
	for _, want := range []string{"›· 1 hub", "+12", "+1 · 900 unread", "2 of 413 tasks"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	r.types("l")
	if r.m.cursor != "task:900" {
		t.Errorf("%s is selected, want the task that depends on it", r.m.cursor)
	}
	if got = look(); !strings.Contains(got, "›· 900 hub +12") {
		t.Errorf("the graph has not gone with the selection:\n%s", got)
	}
	if fmt.Sprint(source.asked) != "[1 900]" {
		t.Errorf("read around %v", source.asked)
	}
}
