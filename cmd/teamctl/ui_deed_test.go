package main

import (
	"encoding/json"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
)

// Each edit of a task from a screen changes one field of it.
func TestDeedsOnTasks(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"rename-task":   `{"subject":"5","task_id":"1"}`,
		"describe-task": `{"description":"5","task_id":"1"}`,
		"command-task":  `{"metadata":{"run":"5"},"task_id":"1"}`,
		"depend":        `{"addDependsOn":["5"],"task_id":"1"}`,
		"prioritize":    `{"priority":5,"task_id":"1"}`,
	} {
		a, ok := view.ActionByID(id)
		if !ok {
			t.Errorf("no action %s", id)
			continue
		}
		in, err := deedInput(a, view.Deed{Action: id, Task: "1", Text: " 5\n"})
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if got, err := json.Marshal(in); err != nil || string(got) != want {
			t.Errorf("%s: %s %v, want %s", id, got, err, want)
		}
	}
}
