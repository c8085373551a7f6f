package tool

import (
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A task that never existed is not reported as already deleted, and one completed by another member
// is not the caller's.
func TestAlreadyTakesEvidence(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a, b := r.as("a", team.RoleExecutor), r.as("b", team.RoleExecutor)
	if _, err := r.TaskAdd(ctx, Person(), TaskAddIn{Tasks: []ledger.NewTask{{Subject: "one"}, {Subject: "two"}}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", AlreadyDeleted} {
		if done, err := r.TaskDelete(ctx, Person(), "2"); err != nil || done.Outcome != want {
			t.Errorf("%+v %v, want %q", done, err, want)
		}
	}
	_, err := r.TaskDelete(ctx, Person(), "3")
	denied(t, err, team.CodeNotFound, team.ReasonTaskNotFound)

	task, err := r.TaskClaim(ctx, a, "1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.TaskStart(ctx, a, "1", task.Attempt); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", Already + "completed"} {
		if done, err := r.TaskComplete(ctx, a, "1", task.Attempt, ledger.Result{}); err != nil || done.Outcome != want {
			t.Errorf("%+v %v, want %q", done, err, want)
		}
	}
	if _, err := r.TaskComplete(ctx, a, "1", task.Attempt+1, ledger.Result{}); !team.IsCode(err, team.CodeConflict) {
		t.Errorf("another attempt: %v", err)
	}
	if _, err := r.TaskComplete(ctx, b, "1", 0, ledger.Result{}); !team.IsCode(err, team.CodeConflict) {
		t.Errorf("another member: %v", err)
	}
	_, err = r.TaskFail(ctx, a, "1", 0, ledger.Result{Error: "x"})
	denied(t, err, team.CodeConflict, team.ReasonAlreadyResolved)
}

// A deleted team is distinguished from one that never existed, until another team has its name.
func TestDeletedBefore(t *testing.T) {
	t.Parallel()
	ctx, env := t.Context(), &Env{Home: team.Home{Dir: t.TempDir()}}
	create := func() {
		t.Helper()
		if _, err := env.TeamCreate(ctx, Person(), TeamCreateIn{TeamName: "demo"}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := env.Delete(ctx, Person(), "demo", DeleteIn{})
	denied(t, err, team.CodeNotFound, team.ReasonTeamNotFound)
	for range 2 {
		create()
		if key, was := env.WasDeleted("demo"); was {
			t.Errorf("%s is there, and said to be deleted", key)
		}
		for _, want := range []string{"", AlreadyDeleted} {
			if out, err := env.Delete(ctx, Person(), "demo", DeleteIn{}); err != nil || out.Outcome != want || !out.Success {
				t.Errorf("%+v %v, want %q", out, err, want)
			}
		}
	}
	for i := range maxDeleted + 5 {
		if err := env.noteDeleted(ctx, "team-"+string(rune('a'+i%26))+string(rune('a'+i/26))); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := env.deletedTeams(); err != nil || len(m) != maxDeleted {
		t.Errorf("%d names are kept, want %d: %v", len(m), maxDeleted, err)
	}
}
