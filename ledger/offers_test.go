package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// offers makes one round of offers and returns "name: task" for each.
func offers(t *testing.T, l *Ledger, taken []string, names ...string) []string {
	t.Helper()
	in := OfferIn{Taken: taken}
	for _, n := range names {
		in.Sessions = append(in.Sessions, "s-"+n)
	}
	var out []string
	for _, o := range must[[]Offer](t)(l.OfferTasks(ctxFor(t), in)) {
		m := must[Message](t)(l.Message(ctxFor(t), o.Message.ID))
		if m.From != team.SystemName || m.Kind != team.KindInfo || len(o.Deliveries) != 1 || o.Deliveries[0].Session != o.Session ||
			!strings.Contains(m.Text, "#"+o.Task) {
			t.Errorf("%+v: %+v", o, m)
		}
		out = append(out, m.To+": "+o.Task)
	}
	return out
}

// Idle members are offered ready tasks in the order of claims, one task each
// and each attempt once; also tasks released by a dead owner.
func TestOfferTasks(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a", "b", "c")
	offered := func(want []string, taken []string, names ...string) {
		t.Helper()
		if got := offers(t, l, taken, names...); !slices.Equal(got, want) {
			t.Errorf("offered %q, want %q", got, want)
		}
	}
	if some, next, err := l.Offerable(ctx, []string{"s-a"}); some || next != 0 || err != nil {
		t.Error(some, next, err)
	}
	offered(nil, nil, "a", "b")
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "one"}, {Subject: "two\nlines", Priority: 1}}, "lead"))
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "later", DependsOn: []string{"1"}}}, "lead"))
	if some, _, err := l.Offerable(ctx, []string{"s-a"}); !some || err != nil {
		t.Error(some, err)
	}
	offered([]string{"a: 2", "b: 1"}, nil, "a", "b", "c")
	offered([]string{"a: 1", "b: 2"}, nil, "a", "b") // each has ignored the other's
	offered(nil, nil, "a", "b")
	offered([]string{"c: 1"}, []string{"2"}, "c", "nobody")
	one := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-c", ID: "1"}))
	offered(nil, nil, "c") // it holds a task
	must[[]string](t)(l.ReleaseOwner(ctx, "s-c", "c ended"))
	offered([]string{"a: 1"}, []string{"2"}, "a")
	one = must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: one.ID}))
	must[[]string](t)(l.Complete(ctx, TaskRef{ID: "1", Owner: "s-a", Attempt: one.Attempt}, Result{}))
	offered([]string{"a: 3"}, nil, "a")
	sound(t, l)
}

// A task assigned while it was blocked is offered when it becomes ready; one
// that was ready was announced by the assignment. A member that does not claim
// by itself is offered no other.
func TestOfferOfAssignedTasks(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a", "b")
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "first"}}, "lead"))
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "then", DependsOn: []string{"1"}}, {Subject: "now"}}, "lead"))
	for _, id := range []string{"2", "3"} {
		must[Task](t)(l.UpdateTask(ctx, TaskPatch{ID: id, Owner: ptr("s-a")}))
	}
	ok(t, l.SetAutoClaim(ctx, "", false))
	if got := offers(t, l, nil, "a", "b"); got != nil {
		t.Errorf("offered %q", got)
	}
	one := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-b", ID: "1"}))
	must[[]string](t)(l.Complete(ctx, TaskRef{ID: "1", Owner: "s-b", Attempt: one.Attempt}, Result{}))
	if got := offers(t, l, nil, "b", "a"); !slices.Equal(got, []string{"a: 2"}) {
		t.Errorf("offered %q", got)
	}
}

// A member that keeps releasing a task is not offered it for ever, and messages
// of the system do not count against the limit of a run.
func TestOffersEnd(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a")
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "again"}}, "lead"))
	told := 0
	for range maxOffers + 2 {
		told += len(offers(t, l, nil, "a"))
		task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: "1"}))
		ok(t, l.As("a").Release(ctx, TaskRef{ID: "1", Owner: "s-a", Attempt: task.Attempt}))
	}
	if told != maxOffers {
		t.Errorf("told %d times, want %d", told, maxOffers)
	}
	for i := range team.MaxMessagesPerRun {
		_, _, err := l.Post(ctx, NewMessage{Kind: team.KindMessage, From: "a", To: team.LeadName, Text: fmt.Sprint(i)})
		ok(t, err)
	}
	_, _, err := l.Post(ctx, NewMessage{Kind: team.KindMessage, From: "a", To: team.LeadName, Text: "one more"})
	refused(t, err, team.CodeLimit, team.ReasonMessagesCap)
}
