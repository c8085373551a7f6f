package services

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/team"
)

// here is a directory in which all verifications run.
type here string

func (h here) VerifyDir(context.Context, ledger.TeamRow, ledger.Member) (string, error) {
	return string(h), nil
}

func (here) VerifyEnv(context.Context, ledger.TeamRow, ledger.Member, string) ([]string, error) {
	return os.Environ(), nil
}

// Submitted tasks are verified, one task of an owner at a time, and a verification that is no
// longer needed is ended.
func TestVerifications(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	b := looptest.NewBus(t, members...)
	s := NewVerifications(tm, time.Minute, here(t.TempDir()))
	b.StartService(s)
	b.Until("nothing to do", func() bool { return !s.Busy() })
	handIn := func(command string) ledger.TaskRef {
		t.Helper()
		made, err := tm.Ledger.CreateTasks(t.Context(), []ledger.NewTask{{Subject: "work", Verify: command}}, team.LeadName)
		if err != nil {
			t.Fatal(err)
		}
		task, err := tm.Ledger.Claim(t.Context(), ledger.ClaimIn{Owner: members[0].SessionKey, ID: made[0].ID})
		if err != nil {
			t.Fatal(err)
		}
		ref := ledger.TaskRef{ID: task.ID, Owner: members[0].SessionKey, Attempt: task.Attempt}
		if _, err := tm.Ledger.Complete(t.Context(), ref, ledger.Result{Summary: "done"}); err != nil {
			t.Fatal(err)
		}
		s.Event(ledger.Event{What: "task.verify", ID: ref.ID})
		return ref
	}
	completed := func(ref ledger.TaskRef) bool {
		task, err := tm.Ledger.Task(t.Context(), ref.ID)
		if err != nil {
			t.Fatal(err)
		}
		return task.Status == team.TaskCompleted
	}
	first, second := handIn("true"), handIn("true")
	b.Fire("verify")
	b.Next()
	if len(s.running) != 1 || !s.Busy() {
		t.Errorf("%d of one owner at once", len(s.running))
	}
	b.Until("both are completed", func() bool { return completed(first) && completed(second) && !s.Busy() })
	long := handIn("exec sleep 600")
	b.Until("begun", func() bool { return len(s.running) == 1 })
	if err := tm.Ledger.Release(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	s.Event(ledger.Event{What: "task.released", ID: long.ID})
	b.Until("it is ended", func() bool { return !s.Busy() && !b.Armed("verify") })
	if completed(long) {
		t.Error("completed, though its verification was ended")
	}
}
