package ledger

import (
	"testing"

	"github.com/teamctl/teamctl/team"
)

func askToSpawn(t *testing.T, l *Ledger, id string) int64 {
	t.Helper()
	out := must[Settled](t)(l.Ask(ctxFor(t), AskIn{RequestID: id, Kind: ApproveDelegation, Session: "s-a", Subject: "spawn x"}))
	return out.Approval.ID
}

// An approved action is stored with the answer until its outcome is recorded,
// and the requester is notified once.
func TestIntents(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	no, yes := askToSpawn(t, l, "d-1"), askToSpawn(t, l, "d-2")
	must[Settled](t)(l.Answer(ctx, AnswerIn{ID: no, By: team.LeadName, Intent: raw(`{"n":1}`)}))
	must[Settled](t)(l.Answer(ctx, AnswerIn{ID: yes, Approve: true, By: team.LeadName, Intent: raw(`{"n":2}`)}))
	open := must[[]Intent](t)(l.Intents(ctx))
	if len(open) != 1 || open[0].Approval != yes || string(open[0].What) != `{"n":2}` || open[0].Outcome != nil {
		t.Fatalf("%+v", open)
	}
	_, err := l.Intent(ctx, no)
	refused(t, err, team.CodeNotFound, team.ReasonNoApproval)

	done := FinishIn{Approval: yes, Outcome: Outcome{Text: "it failed", Error: team.Errorf(team.CodeLimit, "too many").WithReason("most")}}
	first := must[Settled](t)(l.FinishIntent(ctx, done))
	if first.Message == nil || first.Message.To != "a" || first.Message.Text != "it failed" || first.Message.From != team.LeadName {
		t.Errorf("told: %+v", first.Message)
	}
	done.Outcome = Outcome{Text: "it went well"}
	if again := must[Settled](t)(l.FinishIntent(ctx, done)); again.Message != nil {
		t.Errorf("told twice: %+v", again.Message)
	}
	i := must[Intent](t)(l.Intent(ctx, yes))
	if i.Outcome == nil || i.Outcome.Text != "it failed" || i.Outcome.Error.Code != team.CodeLimit || i.Outcome.Error.Reason != "most" {
		t.Errorf("%+v", i.Outcome)
	}
	if left := must[[]Intent](t)(l.Intents(ctx)); len(left) != 0 {
		t.Errorf("%+v", left)
	}
	sound(t, l)
}

// If the requester has left, no message is sent, but the intent still ends.
func TestIntentOfOneThatLeft(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	id := askToSpawn(t, l, "d-1")
	must[Settled](t)(l.Answer(ctx, AnswerIn{ID: id, Approve: true, By: team.LeadName, Intent: raw(`{}`)}))
	ok(t, l.RemoveMember(ctx, "s-a"))
	if out := must[Settled](t)(l.FinishIntent(ctx, FinishIn{Approval: id, Outcome: Outcome{Text: "done"}})); out.Message != nil {
		t.Errorf("%+v", out.Message)
	}
	if i := must[Intent](t)(l.Intent(ctx, id)); i.Outcome == nil {
		t.Error("it is open")
	}
}

// At most one member exists for each spawn that an approval allowed, even after
// the member left.
func TestApprovedMemberIsAddedOnce(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	add := func(nth int) Member {
		m, _, err := l.AddMember(ctx, Member{Name: "x", Spec: team.MemberSpec{Origin: team.Origin{Approval: 7, Nth: nth}}}, false)
		ok(t, err)
		return m
	}
	x, x2 := add(0), add(1)
	if x.SessionKey == x2.SessionKey || x2.Name == x.Name {
		t.Fatalf("%s %s", x.Name, x2.Name)
	}
	if again := add(0); again.SessionKey != x.SessionKey {
		t.Errorf("a second %+v", again)
	}
	ok(t, l.RemoveMember(ctx, x.SessionKey))
	if again := add(0); again.SessionKey != x.SessionKey || again.RemovedAt == 0 {
		t.Errorf("a second %+v", again)
	}
}
