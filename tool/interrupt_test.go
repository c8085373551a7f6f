package tool

import (
	"context"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// interrupter counts the turns that it ends.
type interrupter struct {
	Supervisor
	ended int
}

func (s *interrupter) InterruptMember(context.Context, string) error {
	s.ended++
	return nil
}

// An interrupt rejects the plan that its turn had submitted, and nothing else that
// waits; the next plan is taken.
func TestInterruptRejectsThePlan(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	s := &interrupter{}
	r.Env.Dial = func(context.Context, team.Layout, bool) (Supervisor, error) { return s, nil }
	a, _ := r.memberOf("claude", "a", team.RoleExecutor)
	other := r.as("b", team.RoleExecutor)
	approval := func(a ledger.Approval, err error) ledger.Approval {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	plan := approval(r.AskPlan(ctx, a, PlanIn{Content: "first"}))
	perm := approval(r.AskPermission(ctx, a, PermissionIn{ToolName: "Bash"}))
	its := approval(r.AskPlan(ctx, other, PlanIn{Content: "another's"}))
	mail := len(r.inbox("a"))
	if err := r.Interrupt(ctx, Person(), "a"); err != nil || s.ended != 1 {
		t.Fatal(s.ended, err)
	}
	for id, want := range map[string]ledger.ApprovalState{
		num(plan): ledger.ApprovalRejected, num(perm): ledger.ApprovalPending, num(its): ledger.ApprovalPending,
	} {
		if got := approval(r.Ledger.Approval(ctx, id)); got.State != want {
			t.Errorf("%s of %s: %s, want %s", got.Kind, got.Name, got.State, want)
		}
	}
	if got := approval(r.Ledger.Approval(ctx, num(plan))); got.Feedback != "its turn was interrupted" || got.AnsweredBy != Person().Name {
		t.Errorf("%+v", got)
	}
	if got := len(r.inbox("a")); got != mail {
		t.Errorf("%d more messages to the one that was interrupted", got-mail)
	}
	approval(r.AskPlan(ctx, a, PlanIn{Content: "second"}))
}
