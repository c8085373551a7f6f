package tui

import (
	"testing"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
)

// The description and the command of a task are edited from what they are, and not before that was read.
func TestEditTask(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"describe-task": "two\nlines", "command-task": "go vet ./..."} {
		r := graphOf(t, diamond(), 100, 20)
		r.m.tasksAs = "list"
		r.m.refresh()
		a, ok := view.ActionByID(id)
		if !ok {
			t.Fatalf("no action %s", id)
		}
		if r.begin(a, term.Event{At: epoch}, ""); r.m.over.kind != noOverlay || r.m.toast == "" {
			t.Errorf("%s of a task that was not read opens %v", id, r.m.over.kind)
		}
		r.m.task["1"] = view.TaskDetail{Task: r.m.snap.Tasks[0], Description: "two\nlines", Run: "go vet ./..."}
		if r.begin(a, term.Event{At: epoch}, ""); r.m.over.kind != inputOverlay || r.m.over.field.text != want {
			t.Errorf("%s begins with %q, want %q", id, r.m.over.field.text, want)
		}
		if d := r.m.over.deed; d.Task != "1" || d.Action != id {
			t.Errorf("%s is about %+v", id, d)
		}
	}
}
