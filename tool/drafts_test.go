package tool

import (
	"maps"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestDrafts checks that a draft belongs to its author and is kept until it is emptied, and that one for a
// request goes with the request.
func TestDrafts(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	plan, err := r.AskPlan(ctx, a, PlanIn{Content: threeSteps})
	if err != nil {
		t.Fatal(err)
	}
	keep := func(c Caller, d Draft) {
		t.Helper()
		if err := r.KeepDraft(ctx, c, d); err != nil {
			t.Fatal(err)
		}
	}
	has := func(c Caller, want map[string]string) {
		t.Helper()
		if got, err := r.Drafts(ctx, c); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s has %v, %v, want %v", c.Name, got, err, want)
		}
	}
	reason := Draft{Purpose: "reject " + num(plan), Approval: plan.ID, Text: "not yet"}
	keep(Person(), Draft{Purpose: "message a", Text: "half"})
	keep(Person(), Draft{Purpose: "message a", Text: "half a\nthing"})
	keep(Person(), Draft{Purpose: "add-task", Text: "x"})
	keep(Person(), Draft{Purpose: "add-task", Text: " \n"})
	keep(Person(), reason)
	keep(a, Draft{Purpose: "message b", Text: "mine"})
	has(Person(), map[string]string{"message a": "half a\nthing", "reject " + num(plan): "not yet"})
	has(a, map[string]string{"message b": "mine"})

	if _, err := r.Answer(ctx, Person(), AnswerIn{ID: num(plan), Approve: true}); err != nil {
		t.Fatal(err)
	}
	has(Person(), map[string]string{"message a": "half a\nthing"})
	if names, err := r.Ledger.SettingNames(ctx, draftsOf(Person())); err != nil || len(names) != 1 {
		t.Errorf("the ledger has %q, %v", names, err)
	}
	if err := r.KeepDraft(ctx, Person(), reason); team.ReasonOf(err) != team.ReasonAlreadyResolved {
		t.Errorf("a reason for what was answered: %v", err)
	}
}
