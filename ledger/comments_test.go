package ledger

import (
	"testing"

	"github.com/teamctl/teamctl/team"
)

func draftOn(member, text string) Comment {
	return Comment{Session: "s-" + member, Author: team.LeadName, Text: text, Anchor: Anchor{Path: "cart.go", First: 4, Last: 5, Quote: "a\nb", Above: "x", Below: "y"}}
}

// TestReviewRounds: drafts get their numbers in the round that is sent next; a round is sent
// as it was read or not at all; and what was sent is answered, not changed.
func TestReviewRounds(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b").As(team.LeadName)
	ctx := ctxFor(t)
	one := must[Comment](t)(l.PutDraft(ctx, draftOn("a", "one")))
	two := must[Comment](t)(l.PutDraft(ctx, draftOn("a", "two")))
	if one.Name() != "1.1" || two.Name() != "1.2" || two.Where() != "cart.go:4-5" {
		t.Errorf("%s at %s, %s at %s", one.Name(), one.Where(), two.Name(), two.Where())
	}
	if other := must[Comment](t)(l.PutDraft(ctx, draftOn("b", "x"))); other.Name() != "1.1" {
		t.Errorf("the first comment on another member is %s", other.Name())
	}
	theirs := draftOn("a", "of a reviewer")
	theirs.Author = "b"
	if c := must[Comment](t)(l.PutDraft(ctx, theirs)); c.Name() != "2.1" {
		t.Errorf("the draft of another author is %s", c.Name())
	}
	changed := Comment{Session: "s-a", Author: team.LeadName, Round: 1, Number: 2, Text: "two, too"}
	if c := must[Comment](t)(l.PutDraft(ctx, changed)); c.Text != "two, too" || c.Path != "cart.go" {
		t.Errorf("%+v", c)
	}
	changed.Author = "b"
	_, err := l.PutDraft(ctx, changed)
	refused(t, err, team.CodeConflict, team.ReasonCommentSent)
	for _, bad := range []Comment{{Session: "s-a", Author: "b", Text: "x"}, draftOn("a", " "), {Session: "s-a", Author: "b", Text: "x", Anchor: Anchor{Path: "p", First: 3, Last: 2}}} {
		if _, err := l.PutDraft(ctx, bad); !team.IsCode(err, team.CodeInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}

	in := RoundIn{Session: "s-a", Author: team.LeadName, Drafts: map[int]string{1: "one", 2: "two"}, Tip: "abc",
		Message: &NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "two comments"}}
	_, err = l.SendRound(ctx, in)
	refused(t, err, team.CodeConflict, team.ReasonDraftsChanged)
	_, err = l.AnswerComment(ctx, CommentAnswer{Session: "s-a", Round: 1, Number: 1, Handled: true})
	refused(t, err, team.CodeConflict, team.ReasonCommentDraft)
	in.Drafts[2] = "two, too"
	sent := must[SentRound](t)(l.SendRound(ctx, in))
	if sent.Round.Round != 1 || sent.Round.Message != sent.Message.ID || len(sent.Deliveries) != 1 {
		t.Errorf("%+v", sent)
	}
	_, err = l.PutDraft(ctx, Comment{Session: "s-a", Author: team.LeadName, Round: 1, Number: 1, Text: "late"})
	refused(t, err, team.CodeConflict, team.ReasonCommentSent)
	_, err = l.SendRound(ctx, in)
	refused(t, err, team.CodeConflict, team.ReasonDraftsChanged)

	ask := CommentAnswer{Session: "s-a", Round: 1, Number: 2, Text: "why?", Message: &NewMessage{Kind: team.KindMessage, From: "a", To: team.LeadName, Text: "why?"}}
	for range 2 { // once more changes nothing
		if got := must[AnsweredComment](t)(l.As("a").AnswerComment(ctx, ask)); got.Comment.State != CommentAsked || got.Comment.Answer != "why?" {
			t.Errorf("%+v", got)
		}
	}
	if n := sqlRow[int](t, l.DB(), "SELECT count(*) FROM messages WHERE fromAgent = 'a'"); n != 1 {
		t.Errorf("%d questions were sent", n)
	}
	must[AnsweredComment](t)(l.AnswerComment(ctx, CommentAnswer{Session: "s-a", Round: 1, Number: 2, Handled: true}))
	_, err = l.AnswerComment(ctx, CommentAnswer{Session: "s-a", Round: 1, Number: 9, Handled: true})
	refused(t, err, team.CodeNotFound, team.ReasonCommentNotFound)

	// The next round comes after that of the other author; its task is the member's.
	three := must[Comment](t)(l.PutDraft(ctx, draftOn("a", "three")))
	if three.Name() != "3.1" {
		t.Errorf("the next is %s", three.Name())
	}
	in = RoundIn{Session: "s-a", Author: team.LeadName, Drafts: map[int]string{1: "three"}, Mark: "MARK", Task: &NewTask{Subject: "handle it"},
		Message: &NewMessage{Kind: team.KindTaskAssignment, From: team.LeadName, To: "a", Text: "task MARK", Summary: "MARK"}}
	sent = must[SentRound](t)(l.SendRound(ctx, in))
	task := must[Task](t)(l.Task(ctx, sent.Round.Task))
	if task.Owner != "s-a" || sent.Message.Text != "task "+task.ID || sent.Message.Summary != task.ID {
		t.Errorf("%+v of %+v", sent.Message, task)
	}
	if list := must[[]Round](t)(l.Rounds(ctx, "s-a")); len(list) != 2 || list[0].Tip != "abc" {
		t.Errorf("%+v", list)
	}
	states := ""
	for _, c := range must[[]Comment](t)(l.Comments(ctx, "s-a")) {
		states += c.Name() + " " + string(c.State) + " "
	}
	if states != "1.1 open 1.2 handled 2.1 draft 3.1 open " {
		t.Errorf("comments: %s", states)
	}

	gone := draftOn("b", "")
	gone.Round, gone.Number = 1, 1
	must[Comment](t)(l.PutDraft(ctx, gone))
	if list := must[[]Comment](t)(l.Comments(ctx, "s-b")); len(list) != 0 {
		t.Errorf("a draft without a text: %+v", list)
	}
	if err := l.MarkReviewed(ctx, ReviewedFile{Session: "s-a", Author: "b", Path: "x", Hash: "1"}); err != nil {
		t.Fatal(err)
	}
	if m := must[map[string]string](t)(l.Reviewed(ctx, "s-a", "b")); m["x"] != "1" {
		t.Errorf("%v", m)
	}
}

// TestCommentsOnAPlan: drafts on a plan survive the end of their writer, go with its answer as they
// were read or not at all, and nothing is written once it is answered.
func TestCommentsOnAPlan(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a").As(team.LeadName)
	ctx := ctxFor(t)
	plan := must[Settled](t)(l.As("a").Ask(ctx, AskIn{RequestID: "plan-x", Kind: ApprovePlan, Session: "s-a", Subject: "a plan", Payload: []byte(`{"plan_content":"one\ntwo"}`)})).Approval
	other := must[Settled](t)(l.As("a").Ask(ctx, AskIn{RequestID: "perm-x", Kind: ApprovePermission, Session: "s-a", Subject: "a tool"})).Approval
	on := func(line int, text string) Comment {
		return Comment{Session: OnPlan(plan.RequestID), Author: team.LeadName, Text: text, Anchor: Anchor{Path: "plan", First: line, Last: line, Quote: "q"}}
	}
	one := must[Comment](t)(l.PutDraft(ctx, on(1, "why?")))
	must[Comment](t)(l.PutDraft(ctx, on(2, "no")))
	theirs := on(2, "of another")
	theirs.Author = "b"
	if c := must[Comment](t)(l.PutDraft(ctx, theirs)); one.Name() != "1" || c.Name() != "3" || c.Round != 0 {
		t.Errorf("%s, %s of round %d", one.Name(), c.Name(), c.Round)
	}
	bad := on(1, "x")
	bad.Session = OnPlan(other.RequestID)
	if _, err := l.PutDraft(ctx, bad); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("a comment on a permission: %v", err)
	}
	bad.Session = OnPlan("none")
	_, err := l.PutDraft(ctx, bad)
	refused(t, err, team.CodeNotFound, team.ReasonNoApproval)
	if c := must[Comment](t)(l.PutDraft(ctx, draftOn("a", "on its changes"))); c.Name() != "1.1" {
		t.Errorf("a comment on changes is %s", c.Name())
	}

	in := AnswerIn{ID: plan.ID, By: team.LeadName, Person: true, Feedback: "no", Comments: map[int]string{1: "why?"},
		Message: &NewMessage{Kind: team.KindPlanApprovalResponse, From: team.LeadName, RequestID: plan.RequestID, Text: "no"}}
	_, err = l.Answer(ctx, in)
	refused(t, err, team.CodeConflict, team.ReasonDraftsChanged)
	if got := must[Approval](t)(l.Approval(ctx, "plan-x")); got.State != ApprovalPending {
		t.Errorf("the plan is %s", got.State)
	}
	in.Comments[2] = "no"
	must[Settled](t)(l.Answer(ctx, in))
	_, err = l.Answer(ctx, in)
	refused(t, err, team.CodeConflict, team.ReasonAlreadyResolved)
	_, err = l.PutDraft(ctx, on(1, "late"))
	refused(t, err, team.CodeConflict, team.ReasonAlreadyResolved)
	states := ""
	for _, c := range must[[]Comment](t)(l.Comments(ctx, OnPlan(plan.RequestID))) {
		states += c.Name() + " " + string(c.State) + " "
	}
	if states != "1 open 2 open 3 draft " {
		t.Errorf("comments: %s", states)
	}
}
