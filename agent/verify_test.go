package agent

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestVerifiesItself checks that a verification that the worker has run itself is not run again,
// and that a task whose verification it has not run is not completed.
func TestVerifiesItself(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gate, begun, open := r.gate("g")
	ts := r.add(task("x", "echo x > x", verify("test -e x && echo seen >> seen")), task("y", gate), task("z", "cat seen"))
	w := r.start("ann", func(e *Env) { e.Dir = r.dir })
	begun()
	if got := r.task(ts[0].ID); got.Status != team.TaskCompleted || got.Verification != 0 {
		t.Errorf("%+v", got)
	}
	verified, err := r.led.Events(t.Context(), 0, 0, ledger.EventFilter{What: "task.verified"})
	if err != nil || len(verified) != 1 || verified[0].ID != ts[0].ID || !strings.Contains(string(verified[0].Data), `"attempt":1`) {
		t.Errorf("%+v, %v", verified, err)
	}
	command := "true"
	if _, err := r.led.UpdateTask(t.Context(), ledger.TaskPatch{ID: ts[1].ID, By: team.LeadName, Verify: &command}); err != nil {
		t.Fatal(err)
	}
	open()
	w.shows("waits for its verification")
	if got := r.ended(ts[2].ID); got.Result.Summary != "seen" {
		t.Errorf("it was verified %q", got.Result.Summary)
	}
	if got := r.task(ts[1].ID); got.Status != team.TaskInProgress || got.Verification == 0 {
		t.Errorf("%+v", got)
	}
	for _, n := range r.messages("ann", team.KindTaskCompleted) {
		if n.IdemKey == ledger.TaskCompletedKey(ts[1].ID, 1) {
			t.Error("announced as completed")
		}
	}
}
