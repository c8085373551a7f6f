package tool

import (
	"encoding/json"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A program that leads answers plans and reviews. Requests that let a member act without a question
// are left to the person until the person delegates them.
func TestProgramThatLeads(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	w := r.as("w", team.RoleExecutor)
	row, err := r.Ledger.Member(ctx, team.LeadName)
	if err != nil {
		t.Fatal(err)
	}
	lead := Lead(row)

	refused := func(what string, err error) {
		t.Helper()
		if !team.IsCode(err, team.CodeDenied) {
			t.Errorf("%s: %v, want a denial", what, err)
		}
	}

	plan, err := r.AskPlan(ctx, w, PlanIn{Content: "change it"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Answer(ctx, lead, AnswerIn{ID: num(plan), Approve: true, Mode: string(team.ModeBypass)})
	refused("a plan that skips every question", err)
	if _, err := r.Answer(ctx, lead, AnswerIn{ID: num(plan), Approve: true}); err != nil {
		t.Errorf("a plan: %v", err)
	}

	ask := func(id string) ledger.Approval {
		a, err := r.AskPermission(ctx, w, PermissionIn{RequestID: id, ToolName: "Bash", Input: json.RawMessage(`{"command":"make"}`)})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	one := ask("perm-1-x")
	_, err = r.Answer(ctx, lead, AnswerIn{ID: num(one), Approve: true})
	refused("a permission", err)
	for name, f := range map[string]func() error{
		"a setting":    func() error { return r.Set(ctx, lead, SetLeadAnswers, "permissions") },
		"a budget":     func() error { return r.SetBudget(ctx, lead, "", team.Budget{}) },
		"a rule":       func() error { return r.SetPermissions(ctx, lead, team.Permissions{}) },
		"a mode":       func() error { _, err := r.SetMode(ctx, lead, "w", team.ModeBypass); return err },
		"its own mode": func() error { _, err := r.SetMode(ctx, lead, team.LeadName, team.ModeDefault); return err },
		"a spawn": func() error {
			_, err := r.Spawn(ctx, lead, SpawnIn{Name: "x", MemberSpec: team.MemberSpec{Mode: team.ModeBypass, Bypass: true}})
			return err
		},
		"consent to hooks": func() error { _, err := r.HooksAllow(ctx, lead); return err },
	} {
		refused(name, f())
	}

	// What it may not do by itself it asks for, and a person answers, never itself.
	own, err := r.AskPermission(ctx, lead, PermissionIn{ToolName: "shell", Input: json.RawMessage(`{"command":"make"}`)})
	if err != nil || own.Answerer != ledger.AnswererPerson || own.Message != "" {
		t.Fatalf("%+v, %v", own, err)
	}
	_, err = r.Answer(ctx, lead, AnswerIn{ID: num(own), Approve: true})
	refused("its own permission", err)
	if a, err := r.Answer(ctx, Person(), AnswerIn{ID: num(own), Approve: true}); err != nil || a.State != ledger.ApprovalApproved {
		t.Errorf("%+v, %v", a, err)
	}
	own, err = r.AskPlan(ctx, lead, PlanIn{Content: "lead on"})
	if err != nil || own.Answerer != ledger.AnswererPerson {
		t.Fatalf("%+v, %v", own, err)
	}
	_, err = r.Answer(ctx, Person(), AnswerIn{ID: num(own), Feedback: "not now"})
	if err != nil {
		t.Error(err)
	}
	if _, err := r.AskPermission(ctx, Person(), PermissionIn{ToolName: "shell"}); team.ReasonOf(err) != team.ReasonPerson {
		t.Errorf("a person asks itself: %v", err)
	}

	if err := r.Set(ctx, Person(), SetLeadAnswers, "anything"); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("a value that is none: %v", err)
	}
	if err := r.Set(ctx, Person(), SetLeadAnswers, "permissions"); err != nil {
		t.Fatal(err)
	}
	two := ask("perm-2-x") // the answerer is recorded with the request
	if _, err := r.Answer(ctx, lead, AnswerIn{ID: num(two), Approve: true}); err != nil {
		t.Errorf("a permission that was handed over: %v", err)
	}
	if err := r.Set(ctx, Person(), SetLeadAnswers, ""); err != nil {
		t.Fatal(err)
	}
	_, err = r.Answer(ctx, lead, AnswerIn{ID: num(ask("perm-3-x")), Approve: true})
	refused("a permission after it was taken back", err)
}
