package bridge

import (
	"testing"

	"github.com/teamctl/teamctl/internal/taskfile"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// What is completed there and is to be verified here is in progress there until it is, and
// again where that has failed.
func TestCompletedThereIsVerifiedHere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ours, err := r.team.Ledger.CreateTasks(t.Context(), []ledger.NewTask{{Subject: "Ours", Verify: "true"}}, team.LeadName)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.once()
	}
	for i, passed := range []bool{false, true} {
		if i == 0 {
			r.setTask("1", `"owner":"researcher","status":"in_progress"`)
			r.once()
		}
		r.setTask("1", `"owner":"researcher","status":"completed"`)
		for range 2 {
			r.once()
		}
		task := r.get(ours[0].ID)
		if task.Status != team.TaskInProgress || task.Verification == 0 || task.OwnerName != "researcher" {
			t.Fatalf("%+v", task)
		}
		if v := r.nativeTasks()["1"].View; v.Status != taskfile.InProgress {
			t.Errorf("there: %+v", v)
		}
		if err := r.team.Ledger.BeginVerification(t.Context(), task.Verification, "g", ""); err != nil {
			t.Fatal(err)
		}
		end := ledger.VerifyEnd{ID: task.Verification, Generation: "g", Passed: passed, Why: "exit 1"}
		if out, err := r.team.Ledger.EndVerification(t.Context(), end); err != nil || !out.Counts {
			t.Fatal(out, err)
		}
		for range 2 {
			r.once()
		}
	}
	if got := r.get(ours[0].ID); got.Status != team.TaskCompleted {
		t.Errorf("%+v", got)
	}
	if v := r.nativeTasks()["1"].View; v.Status != taskfile.Completed {
		t.Errorf("there: %+v", v)
	}
}
