package tool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// ids are those of the tasks that were read, in order; "all" for a whole board.
func (p Progress) ids() string {
	if p.Part == nil {
		return "all"
	}
	var out []string
	for _, task := range p.Tasks {
		out = append(out, task.ID)
	}
	return strings.Join(out, " ")
}

// A wait for some tasks of a long board, or a watch of it, reads after a change only what has
// changed, what is in progress, and what is waited for.
func TestWaitReadsWhatHasChanged(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	batch := make([]ledger.NewTask, 300)
	for i := range batch {
		batch[i].Subject = fmt.Sprint("task ", i+1)
		batch[i].Metadata = []byte(`{"run":"true"}`)
	}
	batch[0].Ref, batch[298].Ref = "first", "last but one"
	batch[298].DependsOn = []string{"first"}
	batch[299].DependsOn = []string{"last but one"}
	if _, err := r.TaskAdd(ctx, Person(), TaskAddIn{Tasks: batch}); err != nil {
		t.Fatal(err)
	}
	var shown []string
	each := func(p Progress) {
		if p.Counts.Total() != 300 || len(p.Members) != 2 {
			t.Errorf("of %d tasks and %d members", p.Counts.Total(), len(p.Members))
		}
		shown = append(shown, p.ids())
	}
	watch := waiting{Team: r.Team, in: WaitIn{Each: each}}
	one := waiting{Team: r.Team, in: WaitIn{Tasks: []string{"7", "1"}}}
	behind := waiting{Team: r.Team, in: WaitIn{Tasks: []string{"300"}}}
	look := func(w *waiting, open bool) string {
		t.Helper()
		w.part = Progress{}
		if got, err := w.again(ctx); err != nil || got != open {
			t.Errorf("open %v, %v; want %v", got, err, open)
		}
		return w.part.ids()
	}
	wants := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("read %s, want %s", got, want)
		}
	}
	claim := func(id string) ledger.TaskRef {
		t.Helper()
		task, err := r.Ledger.Claim(ctx, ledger.ClaimIn{Owner: a.Session, ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return ledger.TaskRef{ID: id, Owner: a.Session, Attempt: task.Attempt}
	}
	look(&watch, false) // for the first time it is shown whole
	wants(look(&watch, true), "")
	wants(look(&one, true), "1 7")
	wants(look(&behind, true), "300")

	seven, nine := claim("7"), claim("9")
	wants(look(&watch, true), "7 9")
	if _, err := r.Ledger.Complete(ctx, seven, ledger.Result{}); err != nil {
		t.Fatal(err)
	}
	wants(look(&watch, true), "7 9")
	wants(look(&watch, true), "9")
	wants(look(&one, true), "1 7 9")
	first := claim("1")
	if err := r.Ledger.Fail(ctx, first, ledger.Result{ExitCode: 1}); err != nil {
		t.Fatal(err)
	}
	wants(look(&watch, true), "1 9")
	look(&one, false)    // both have ended
	look(&behind, false) // it never comes free
	if err := r.Ledger.Release(ctx, nine); err != nil {
		t.Fatal(err)
	}
	wants(look(&watch, true), "9")
	if diff := cmp.Diff([]string{"", "7 9", "7 9", "9", "1 9", "9"}, shown); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}

	// More than that at once is read whole, once.
	more := make([]ledger.NewTask, manyChanged+1)
	for i := range more {
		more[i].Subject, more[i].Metadata = "more", []byte(`{"run":"true"}`)
	}
	if _, err := r.TaskAdd(ctx, Person(), TaskAddIn{Tasks: more}); err != nil {
		t.Fatal(err)
	}
	shown = nil
	look(&watch, false)
	if len(shown) > 0 {
		t.Errorf("shown: %v", shown)
	}
	one.in.Tasks = []string{"nosuch"}
	look(&one, false)
	if _, err := r.Wait(ctx, one.in); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("a task that is not there: %v", err)
	}
}
