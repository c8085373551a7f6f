package supervisor

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
)

// copies waits for a number of copies, the newest younger than before.
func (r *rig) copies(after time.Time) ledger.Copy {
	r.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for {
		list, err := ledger.Copies(r.layout.Copies())
		if err != nil {
			r.Fatal(err)
		}
		if len(list) > 0 && list[0].At.After(after) {
			return list[0]
		}
		if time.Now().After(deadline) {
			r.Fatalf("no copy after %s: %+v", after, list)
		}
		t := time.NewTimer(10 * time.Millisecond)
		<-t.C
	}
}

// A copy is made when a run has ended, and when the ledger changes and the newest copy is old.
func TestCopyAfterARun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.policy.CopyRest, r.policy.CopyEvery = 100*time.Millisecond, time.Hour
	s := r.supervisor()
	if _, err := r.led.StartRun(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := r.copies(time.Time{})
	s.Close()

	r.policy.CopyRest, r.policy.CopyEvery = time.Millisecond, 100*time.Millisecond
	r.supervisor()
	if _, err := r.led.CreateTasks(t.Context(), []ledger.NewTask{{Subject: "s", Description: "d"}}, "t"); err != nil {
		t.Fatal(err)
	}
	r.copies(first.At)
}
