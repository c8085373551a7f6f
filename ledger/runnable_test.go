package ledger

import "testing"

// A worker's own claims get only tasks with a command, in the order of all
// claims; a claim by id gets any task, and while AutoClaim is off only assigned
// ones.
func TestClaimRunnable(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	run := raw(`{"run":"true"}`)
	ts := must[[]Task](t)(l.CreateTasks(ctx, []NewTask{
		{Subject: "prose", Description: "d", Priority: 9},
		{Subject: "blank", Description: "d", Metadata: raw(`{"run":" \n\t"}`)},
		{Subject: "null", Description: "d", Metadata: raw(`{"run":null,"x":1}`)},
		{Subject: "low", Description: "d", Metadata: run},
		{Subject: "high", Description: "d", Metadata: run, Priority: 1},
		{Subject: "mine", Description: "d", Metadata: run},
		{Subject: "mine, prose", Description: "d"},
	}, "a"))
	for _, i := range []int{5, 6} {
		must[Task](t)(l.Reassign(ctx, ts[i].ID, "s-a", "a"))
	}
	claim := func(owner string) string {
		task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: owner, Runnable: true}))
		if task == nil {
			return ""
		}
		return task.Subject
	}
	may := func(owner string, want bool) {
		t.Helper()
		if got := must[bool](t)(l.Runnable(ctx, owner)); got != want {
			t.Errorf("runnable for %s: %v", owner, got)
		}
	}
	may("s-b", true)
	ok(t, l.SetAutoClaim(ctx, "", false))
	if got := claim("s-b"); got != "" {
		t.Errorf("claimed %s", got)
	}
	if got := claim("s-a"); got != "mine" {
		t.Errorf("claimed %q", got)
	}
	ok(t, l.SetAutoClaim(ctx, "", true))
	for _, want := range []string{"high", "low", ""} {
		if got := claim("s-b"); got != want {
			t.Errorf("claimed %q, want %q", got, want)
		}
	}
	may("s-a", false)
	may("s-b", false)
	if got := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-b", ID: ts[0].ID, Runnable: true})); got == nil || got.Subject != "prose" {
		t.Errorf("%+v", got)
	}
}
