package tool

import (
	"context"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// The condition that holds mail may end while there is no supervisor: the process that ends it
// starts one, since the mail would wait for the next command otherwise.
func TestEndOfALimitStartsASupervisor(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	started := 0
	r.Env.Dial = func(_ context.Context, _ team.Layout, start bool) (Supervisor, error) {
		if start {
			started++
		}
		return nil, team.Errorf(team.CodeUnavailable, "none")
	}
	limit := func() {
		t.Helper()
		if _, opened, err := quota.Note(t.Context(), r.Ledger, "claude", "ann", time.Now(), time.Time{}, nil); err != nil || !opened {
			t.Fatal(opened, err)
		}
	}
	limit()
	if err := r.ResumeUsage(t.Context(), Person(), "claude"); err != nil || started != 0 {
		t.Fatalf("nobody runs: %v, %d started", err, started)
	}
	m, _, err := r.Ledger.AddMember(t.Context(), ledger.Member{Name: "ann", Spec: team.MemberSpec{Agent: "claude"}}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []team.Observed{team.Starting, team.Running} {
		if _, err := r.Ledger.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: m.SessionKey, Observed: &o}); err != nil {
			t.Fatal(err)
		}
	}
	limit()
	if err := r.ResumeUsage(t.Context(), Person(), "claude"); err != nil || started != 1 {
		t.Fatalf("resumed: %v, %d started", err, started)
	}
	if err := r.SetBudget(t.Context(), Person(), "ann", team.Budget{Tokens: 1}); err != nil || started != 2 {
		t.Fatalf("another budget: %v, %d started", err, started)
	}
	if err := r.ResumeUsage(t.Context(), Person(), "claude"); !team.IsCode(err, team.CodeNotFound) || started != 2 {
		t.Errorf("nothing to resume: %v, %d started", err, started)
	}
}
