package ledger

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// A task released by the lead is held back from claims without an id and from its
// previous owner. Another member that claims it by id gets it at once.
func TestReleaseHold(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b", "c")
	c := &clock{time.UnixMilli(1_000_000_000)}
	l.now = c.now
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "x", RetryPolicy: RetryPolicy{MaxRetries: 1, RetryBackoff: 1000}}}, "lead"))
	taken := func(by string) Task {
		t.Helper()
		got := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: by, ID: "1"}))
		if got.OwnerName != by[2:] || got.NotBefore != 0 {
			t.Errorf("%+v", got)
		}
		return *got
	}
	free := func(task Task) {
		t.Helper()
		ok(t, l.As(team.LeadName).Release(ctx, ref(&task)))
		for _, s := range []string{"s-a", "s-b"} {
			if got := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: s})); got != nil {
				t.Fatalf("%s claimed %+v without asking for it", s, got)
			}
		}
	}
	free(taken("s-a"))
	_, err := l.Claim(ctx, ClaimIn{Owner: "s-a", ID: "1"})
	refused(t, err, team.CodeConflict, team.ReasonNotYet)
	free(taken("s-b"))
	free(taken("s-c"))
	c.advance(ReleaseHold)
	if got := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"})); got == nil || got.ID != "1" {
		t.Fatalf("%+v", got)
	}
	// A claim does not shorten a backoff.
	ok(t, l.Fail(ctx, ref(ptr(must[Task](t)(l.Task(ctx, "1")))), Result{}))
	_, err = l.Claim(ctx, ClaimIn{Owner: "s-b", ID: "1"})
	refused(t, err, team.CodeConflict, team.ReasonNotYet)
	c.advance(time.Second)
	free(taken("s-b"))
	sound(t, l)
}
