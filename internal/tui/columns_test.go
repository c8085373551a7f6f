package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// On a wide screen the states of the board are columns: j and k stay within one, h and l go to the
// others. On a narrow one they are below each other.
func TestColumns(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{200, 50}, {120, 36}, {100, 12}, {99, 36}, {80, 24}} {
		m := shownOf(crowd(8), size[0], size[1])
		m.at, m.tasksAs = inTasks, "board"
		m.refresh()
		golden(t, fmt.Sprintf("columns-%dx%d.txt", size[0], size[1]), text(m.draw()))
	}
	r := graphOf(t, crowd(8), 120, 36)
	m := r.m
	m.tasksAs, m.cursor = "board", "task:3"
	m.refresh()
	_ = m.draw()
	for _, step := range []struct{ keys, want string }{
		{"k k k", "101"}, {"j", "102"}, {"l", "2"}, {"j", "2"}, {"l", "10"}, {"h h", "101"}, {"G", "4"}, {"l l l l l l", "1"}, {"left", "5"},
	} {
		r.types(step.keys)
		if f := m.draw(); m.cursor != "task:"+step.want || strings.Count(text(f), "›") != 1 {
			t.Fatalf("after %q: %s is selected, want %s\n%s", step.keys, m.cursor, step.want, text(f))
		}
	}
}

// The counts of columns are those of the whole board, whatever was read of it.
func TestColumnsCountTheWhole(t *testing.T) {
	t.Parallel()
	s := chain(5)
	s.Whole = &view.Counts{Done: 3, Failed: 7, Ready: 413, Total: 423}
	m := shownOf(s, 120, 36)
	m.at, m.tasksAs = inTasks, "board"
	m.refresh()
	if got := text(m.draw()); !strings.Contains(got, "READY 413") || !strings.Contains(got, "FAILED 7") || !strings.Contains(got, "IN WORK 0") {
		t.Errorf("the counts are not those of the whole:\n%s", got)
	}
}

// The tree has each task once, below the first that it depends on; the others name it.
func TestTree(t *testing.T) {
	t.Parallel()
	s := diamond()
	s.Tasks = append(s.Tasks, view.Task{ID: "6", Subject: "alone", Status: team.TaskPending})
	for _, size := range [][2]int{{120, 36}, {40, 10}} {
		m := shownOf(s, size[0], size[1])
		m.at, m.tasksAs = inTasks, "tree"
		m.refresh()
		var got []string
		for _, it := range m.sections[0].items {
			got = append(got, it.id)
		}
		if want := "task:1 task:3 task:5 task:4 also:4:5 task:2 also:2:4 task:6"; strings.Join(got, " ") != want {
			t.Errorf("%v, want %s", got, want)
		}
		golden(t, fmt.Sprintf("tree-%dx%d.txt", size[0], size[1]), text(m.draw()))
	}
	r := graphOf(t, s, 120, 36)
	r.m.tasksAs, r.m.cursor = "tree", "also:4:5"
	r.m.refresh()
	if got := r.m.target(); got.Task == nil || got.Task.ID != "5" {
		t.Errorf("an action on the name of a task is about %+v", got)
	}
	if r.types("v"); r.m.tasksAs != "board" || r.m.cursor != "task:5" {
		t.Errorf("%s of the %s is selected after the tree", r.m.cursor, r.m.tasksAs)
	}
}
