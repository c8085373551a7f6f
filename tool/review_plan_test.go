package tool

import (
	"os"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

const threeSteps = "# Plan\r\n1. rename the flag\n2. delete the old one\n3. write a test\n\n"

// TestPlanComments: drafts on lines of a plan go with its rejection, once, each with its number,
// its line and what stands there; the same answer again is the same.
func TestPlanComments(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	plan, err := r.AskPlan(ctx, a, PlanIn{Content: threeSteps})
	if err != nil {
		t.Fatal(err)
	}
	add := func(in ReviewAddIn) ReviewComment {
		t.Helper()
		in.Plan = num(plan)
		x, err := r.ReviewAdd(ctx, Person(), in)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	one := add(ReviewAddIn{Lines: "3", Text: "keep it\nfor a release"})
	add(ReviewAddIn{Lines: "2-4", Text: "in one commit each"})
	if one.Name != "1" || one.Quote != "2. delete the old one" || one.Member != "a" || one.Plan != plan.ID {
		t.Errorf("%+v", one)
	}
	if x := add(ReviewAddIn{Comment: "1", Text: "keep it"}); x.Line != 3 || x.Text != "keep it" {
		t.Errorf("changed: %+v", x)
	}
	gone := add(ReviewAddIn{Lines: "1", Text: "x"})
	add(ReviewAddIn{Comment: gone.Name})
	for want, in := range map[team.Code]ReviewAddIn{
		team.CodeNotFound: {Lines: "5", Text: "past its end"},
		team.CodeInvalid:  {Text: "on no line"},
	} {
		in.Plan = num(plan)
		if _, err := r.ReviewAdd(ctx, Person(), in); !team.IsCode(err, want) {
			t.Errorf("%+v: %v", in, err)
		}
	}
	_, err = r.ReviewAdd(ctx, a, ReviewAddIn{Plan: num(plan), Lines: "1", Text: "mine"})
	denied(t, err, team.CodeDenied, "role")

	// Another one who may answer neither sees nor sends them.
	other, err := r.PlanComments(ctx, a, plan.RequestID)
	if err != nil || len(other.Comments) != 0 {
		t.Errorf("%+v, %v", other, err)
	}
	in := AnswerIn{ID: num(plan), Feedback: "not yet", Comments: true}
	for _, outcome := range []string{"", Already + "rejected"} {
		got, err := r.Answer(ctx, Person(), in)
		if err != nil || got.Outcome != outcome || got.Unsent != 0 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	const want = "not yet\n\n2 comments on the plan:\n\n1. line 3:\n> 2. delete the old one\nkeep it\n\n" +
		"2. lines 2 to 4:\n> 1. rename the flag\n> 2. delete the old one\n> 3. write a test\nin one commit each"
	f, _ := inbox.Parse(r.lastText("a"))
	if got, ok := f.(inbox.PlanApprovalResponse); !ok || got.Feedback != want {
		t.Errorf("the member is told %+v", f)
	}
	if n := strings.Count(mailOf(r, "a"), "keep it"); n != 1 {
		t.Errorf("the comments were sent %d times", n)
	}
	_, err = r.ReviewAdd(ctx, Person(), ReviewAddIn{Plan: num(plan), Lines: "1", Text: "late"})
	denied(t, err, team.CodeConflict, team.ReasonAlreadyResolved)

	// Those on the next plan are of that plan alone. An approval sends none, and says so.
	if plan, err = r.AskPlan(ctx, a, PlanIn{Content: "small steps"}); err != nil {
		t.Fatal(err)
	}
	_, err = r.Answer(ctx, Person(), AnswerIn{ID: num(plan), Comments: true})
	denied(t, err, team.CodeInvalid, "") // there are none, and no reason
	add(ReviewAddIn{Lines: "1", Text: "how small?"})
	_, err = r.Answer(ctx, Person(), AnswerIn{ID: num(plan), Approve: true, Comments: true})
	denied(t, err, team.CodeInvalid, "")
	if got, err := r.Answer(ctx, Person(), AnswerIn{ID: num(plan), Approve: true}); err != nil || got.Unsent != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func mailOf(r talkRig, name string) (all string) {
	for _, m := range r.inbox(name) {
		all += m.Text + "\n"
	}
	return all
}

// TestPlanChanged: comments are not sent with the answer to a plan that has changed since, and one
// that is too long for a message goes as a file.
func TestPlanChanged(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	plan, err := r.AskPlan(ctx, r.as("a", team.RoleExecutor), PlanIn{Content: threeSteps})
	if err != nil {
		t.Fatal(err)
	}
	d := ledger.Comment{Session: ledger.OnPlan(plan.RequestID), Author: team.LeadName, Text: "why?", Anchor: ledger.Anchor{Path: planFile, First: 2, Last: 2, Quote: "1. rename everything"}}
	if d, err = r.Ledger.As(team.LeadName).PutDraft(ctx, d); err != nil {
		t.Fatal(err)
	}
	if x, err := r.PlanComments(ctx, Person(), num(plan)); err != nil || !x.Comments[0].Changed {
		t.Errorf("%+v, %v", x, err)
	}
	_, err = r.Answer(ctx, Person(), AnswerIn{ID: num(plan), Feedback: "no", Comments: true})
	denied(t, err, team.CodeConflict, team.ReasonDraftsChanged)
	if x, err := r.Ledger.Approval(ctx, num(plan)); err != nil || x.State != ledger.ApprovalPending {
		t.Errorf("%s, %v", x.State, err)
	}
	if _, err := r.ReviewAdd(ctx, Person(), ReviewAddIn{Plan: num(plan), Comment: d.Name(), Lines: "2", Text: strings.Repeat("long ", reviewMost/5)}); err != nil {
		t.Fatal(err)
	}
	got, err := r.Answer(ctx, Person(), AnswerIn{ID: num(plan), Comments: true})
	if err != nil {
		t.Fatal(err)
	}
	_, file, _ := strings.Cut(got.Feedback, "in the file ")
	text, err := os.ReadFile(strings.TrimSuffix(file, ": read it."))
	if err != nil || !strings.HasPrefix(string(text), "1. line 2:\n> 1. rename the flag\nlong long ") {
		t.Errorf("%q: %.80q, %v", got.Feedback, text, err)
	}
}
