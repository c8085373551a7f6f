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
