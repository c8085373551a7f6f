package view

import (
	"testing"

	"github.com/teamctl/teamctl/team"
)

// A member that goes on while its work is verified is shown with what it goes on with.
func TestTaskOf(t *testing.T) {
	t.Parallel()
	submitted := Task{ID: "1", Owner: "a", Status: team.TaskInProgress, Note: "being verified"}
	works := Task{ID: "2", Owner: "a", Status: team.TaskClaimed}
	others := Task{ID: "3", Owner: "b", Status: team.TaskClaimed}
	for _, c := range []struct {
		tasks []Task
		want  string
	}{
		{[]Task{submitted, works, others}, "2"},
		{[]Task{works, submitted}, "2"},
		{[]Task{submitted, others}, "1"},
		{[]Task{others}, ""},
	} {
		if got, ok := (Snapshot{Tasks: c.tasks}).TaskOf("a"); got.ID != c.want || ok != (c.want != "") {
			t.Errorf("%v: %q, %v, want %q", c.tasks, got.ID, ok, c.want)
		}
	}
}
