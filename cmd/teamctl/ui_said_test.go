package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
)

// TestTaskSaid checks that what is done to a task on a screen is told as elsewhere on it.
func TestTaskSaid(t *testing.T) {
	t.Parallel()
	for _, a := range view.Actions() {
		said := taskSaid(a.ID, view.Deed{Action: a.ID, Task: "7", Text: " 8, 9\n"})
		of := slices.Contains(a.On, view.OnTask) && a.Operation != "" && !strings.HasPrefix(a.Operation, "Send")
		if (said != "") != of || of && (!strings.Contains(said, "task 7") || strings.Contains(said, "#")) {
			t.Errorf("%s of a task says %q", a.ID, said)
		}
	}
	if got, want := taskSaid("depend", view.Deed{Task: "7", Text: " 8, 9\n"}), "task 7 depends on 8, 9, too"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
