package ledger

import (
	"testing"

	"github.com/teamctl/teamctl/team"
)

// An idle notice reports what happened in the turn.
func TestDidSince(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a", "b", "c")
	a := must[Member](t)(l.Member(ctx, "a"))
	did := func(since TurnMark) Did { return must[Did](t)(l.DidSince(ctx, a, since)) }
	say := func(from, to, summary, text string) {
		t.Helper()
		_, _, err := l.Post(ctx, NewMessage{Kind: team.KindMessage, From: from, To: to, Summary: summary, Text: text})
		ok(t, err)
	}
	say("a", "b", "", "before")
	first := did(TurnMark{})
	if first.Peers != "" || first.Task != "" || first.Next.At == 0 {
		t.Fatalf("%+v", first)
	}
	if got := did(first.Next); got.Peers != "" || got.Task != "" {
		t.Errorf("%+v of nothing", got)
	}
	first.Next.At-- // the clock may not have advanced
	say("a", team.LeadName, "for the lead", "it has it")
	say("b", "a", "an answer", "yes")
	say("a", "b", "how it is", "long")
	say("a", "c", "", "one two three four five six seven eight nine ten eleven")
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "x"}, {Subject: "y"}}, "lead"))
	must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: "1"}))
	must[[]string](t)(l.Complete(ctx, TaskRef{ID: "1", Owner: "s-a", Attempt: 1}, Result{}))
	second := did(first.Next)
	if second.Peers != "[to b] how it is [to c] one two three four five six seven eight nine ten..." ||
		second.Task != "1" || second.Status != team.TaskCompleted || second.Why != "" {
		t.Errorf("%+v", second)
	}
	say("a", "b", "more", "more")
	say("a", "", "to everybody", "text")
	must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: "2"}))
	ok(t, l.Fail(ctx, TaskRef{ID: "2", Owner: "s-a", Attempt: 1}, Result{Error: "no tests\nat all"}))
	if got := did(first.Next); got.Peers != "1 more, and [to c] one two three four five six seven eight nine ten... [to b] more [to all] to everybody" ||
		got.Task != "2" || got.Status != team.TaskFailed || got.Why != "no tests" {
		t.Errorf("%+v", got)
	}
}
