package look

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
)

// TestTaskPages checks that the pages after a snapshot have the tasks that it leaves out, that a filter
// matches as on the screen, and that changes and deletions are told.
func TestTaskPages(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	tm := newMailTeam(t, "ann")
	batch := make([]ledger.NewTask, 50)
	for i := range batch {
		batch[i].Subject = fmt.Sprintf("job %d.", i+1)
	}
	behind := []ledger.NewTask{{Subject: "waits", DependsOn: []string{"7"}}, {Subject: "stuck", DependsOn: []string{"9"}}}
	for _, list := range [][]ledger.NewTask{batch, behind} {
		if _, err := tm.Ledger.CreateTasks(ctx, list, "lead"); err != nil {
			t.Fatal(err)
		}
	}
	ann, err := tm.Ledger.Member(ctx, "ann")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"9", "3", "4"} {
		x, err := tm.Ledger.Claim(ctx, ledger.ClaimIn{Owner: ann.SessionKey, ID: id})
		if err != nil {
			t.Fatal(err)
		}
		ref := ledger.TaskRef{ID: x.ID, Owner: ann.SessionKey, Attempt: x.Attempt}
		if id == "9" {
			err = tm.Ledger.Fail(ctx, ref, ledger.Result{ExitCode: 1})
		} else {
			_, err = tm.Ledger.Complete(ctx, ref, ledger.Result{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(q view.TaskQuery) string {
		t.Helper()
		var ids []string
		for {
			p, err := TaskPage(ctx, tm, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range p.Tasks {
				ids = append(ids, x.ID)
			}
			if q.After = p.Next; q.After == "" {
				return strings.Join(ids, " ")
			}
		}
	}
	all := strings.Fields(read(view.TaskQuery{Most: 7}))
	if len(all) != 52 || all[0] != "9" || all[49] != "52" {
		t.Errorf("all %v", all)
	}
	for _, most := range []int{1, 2, 20, 51} {
		s, _, err := snapshot(ctx, tm, most, stamp(0))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Join(all[most:], " "), read(view.TaskQuery{After: s.End(), Most: 300})); diff != "" {
			t.Errorf("after %d tasks (-want +got):\n%s", most, diff)
		}
	}
	for filter, want := range map[string]string{
		"state:ready job 1": "1 10 11 12 13 14 15 16 17 18 19 21 31 41", "state:stuck": "52", "state:pending": "51", "ANN state:completed": "4 3",
		"agent:" + ann.Spec.Agent + " failed": "9", "nothing": "",
	} {
		if got := read(view.TaskQuery{Filter: filter, Most: 4}); got != want {
			t.Errorf("%s: %s, want %s", filter, got, want)
		}
	}
	if got := read(view.TaskQuery{Part: view.PartFailed, Most: 4}); got != "9" {
		t.Errorf("the failed ones: %s", got)
	}
	if _, err := TaskPage(ctx, tm, view.TaskQuery{After: "elsewhere.1.2", Most: 4}); err == nil {
		t.Error("such a place exists")
	}

	p, err := TaskPage(ctx, tm, view.TaskQuery{Most: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tm.Ledger.DeleteTask(ctx, "20"); err != nil {
		t.Fatal(err)
	}
	if _, err := tm.Ledger.Claim(ctx, ledger.ClaimIn{Owner: ann.SessionKey, ID: "30"}); err != nil {
		t.Fatal(err)
	}
	n, err := TaskNews(ctx, tm, []string{"20", "21", "52"}, p.Event)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, x := range n.Tasks {
		ids = append(ids, fmt.Sprintf("%s %s %t", x.ID, x.Status, x.Stuck))
	}
	if diff := cmp.Diff([]string{"21 pending false", "30 claimed false", "52 pending true"}, ids); diff != "" || len(n.Gone) != 1 || n.Event <= p.Event || n.Anew {
		t.Errorf("%+v (-want +got):\n%s", n, diff)
	}
}
