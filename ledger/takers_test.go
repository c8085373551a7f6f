package ledger

import (
	"strings"
	"testing"
)

// Ready are pending tasks without unmet dependencies: free ones, assigned ones and those that are
// retried later. Among more than the limit, the most urgent free ones are returned.
func TestReadyTasks(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	ids := func(limit int) string {
		t.Helper()
		var out []string
		for _, task := range must[[]Task](t)(l.ReadyTasks(ctx, limit)) {
			out = append(out, task.ID)
		}
		return strings.Join(out, " ")
	}
	if got := ids(9); got != "" {
		t.Errorf("%q", got)
	}
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{
		{Ref: "x", Subject: "retried", RetryPolicy: RetryPolicy{MaxRetries: 2, RetryBackoff: 60000}}, {Subject: "blocked", DependsOn: []string{"x"}},
		{Subject: "free"}, {Subject: "assigned"}, {Subject: "urgent", Priority: 3}, {Subject: "claimed", Priority: 9},
	}, "lead"))
	must[Task](t)(l.Reassign(ctx, "4", "s-a", "a"))
	claimed := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: "6"}))
	if got := ids(9); got != "1 3 4 5" {
		t.Errorf("%q", got)
	}
	if got := ids(1); got != "4" && got != "5" {
		t.Errorf("one: %q", got)
	}
	must[[]string](t)(l.Complete(ctx, ref(claimed), Result{}))
	end(t, l, true, 1)
	if got := ids(9); got != "1 3 4 5" {
		t.Errorf("with one that is retried later: %q", got)
	}
}
