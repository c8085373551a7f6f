package ledger

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// end claims and ends tasks as a.
func end(t *testing.T, l *Ledger, fails bool, ids ...int) {
	t.Helper()
	for _, id := range ids {
		task := must[*Task](t)(l.Claim(ctxFor(t), ClaimIn{Owner: "s-a", ID: fmt.Sprint(id)}))
		if fails {
			ok(t, l.Fail(ctxFor(t), ref(task), Result{ExitCode: 1}))
		} else {
			must[[]string](t)(l.Complete(ctxFor(t), ref(task), Result{}))
		}
	}
}

// Whatever the length of the board, only as many tasks are read as fit a
// screen: those in progress, and of the rest the first in the order that
// matters to a person.
func TestBoardReadsWhatCanBeShown(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a")
	c := &clock{at: l.now()}
	l.now = func() time.Time { c.advance(time.Millisecond); return c.at }
	batch := make([]NewTask, 120)
	for i := range batch {
		batch[i].Subject = fmt.Sprintf("task %d", i+1)
	}
	must[[]Task](t)(l.CreateTasks(ctx, batch, "lead"))
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{
		{Ref: "x", Subject: "behind what fails", DependsOn: []string{"50"}}, // 121
		{Subject: "behind that", DependsOn: []string{"x"}},                  // 122
		{Subject: "waits", DependsOn: []string{"119"}},                      // 123
		{Subject: "comes back later", RetryPolicy: RetryPolicy{MaxRetries: 1, RetryBackoff: 600_000}},
	}, "lead"))
	for id := 1; id <= 40; id++ {
		end(t, l, false, id)
	}
	end(t, l, true, 50, 51)
	end(t, l, false, 45) // the newest of the completed tasks
	end(t, l, true, 124)
	for _, id := range []string{"119", "60"} {
		must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: id}))
	}
	shown := func(atMost int) string {
		t.Helper()
		b := must[Board](t)(l.Board(ctx, atMost))
		if len(b.Tasks) > atMost+2 {
			t.Errorf("%d tasks of at most %d and the two in work were read", len(b.Tasks), atMost)
		}
		var ids []string
		for _, task := range b.Tasks {
			id := task.ID
			if b.Stuck[id] {
				id += "!"
			}
			ids = append(ids, id)
		}
		if diff := cmp.Diff(Counts{Pending: 79, Ready: 75, Claimed: 2, Completed: 41, Failed: 2, Stuck: 2}, b.Counts); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if b.Free != 76 {
			t.Errorf("%d wait for nothing", b.Free)
		}
		return strings.Join(ids, " ")
	}
	if got := shown(1); got != "51 60 119" {
		t.Errorf("of one: %s", got)
	}
	if got := shown(5); got != "41 42 43 50 51 60 119" {
		t.Errorf("of five: %s", got)
	}
	all := strings.Fields(shown(2 + 79 + 3))
	want := []string{"39", "40"}
	for id := 41; id <= 124; id++ {
		switch id {
		case 121, 122:
			want = append(want, fmt.Sprintf("%d!", id))
		default:
			want = append(want, fmt.Sprint(id))
		}
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("all that is open, and three that are done (-want +got):\n%s", diff)
	}
}

// Changed tasks are read together with those in progress, and nothing else of
// the board.
func TestBoardOf(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a")
	batch := make([]NewTask, 30)
	for i := range batch {
		batch[i].Subject = "task"
	}
	batch[19].DependsOn = []string{"first"}
	batch[0].Ref = "first"
	must[[]Task](t)(l.CreateTasks(ctx, batch, "lead"))
	end(t, l, true, 1)
	end(t, l, false, 2, 3)
	must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: "7"}))
	for _, tt := range []struct {
		ids  []string
		want string
	}{{nil, "7"}, {[]string{"3", "20", "7", "1", "99"}, "1 3 7 20!"}} {
		b := must[Board](t)(l.BoardOf(ctx, tt.ids))
		var got []string
		for _, task := range b.Tasks {
			id := task.ID
			if b.Stuck[id] {
				id += "!"
			}
			got = append(got, id)
		}
		if strings.Join(got, " ") != tt.want || b.Counts.Total() != 30 || b.Counts.Stuck != 1 || b.Free != 25 {
			t.Errorf("%v: %v of %+v, %d free; want %s", tt.ids, got, b.Counts, b.Free, tt.want)
		}
	}
	if p := plan(t, l, strings.ReplaceAll(sqlBoardOf, "?1", "'[\"1\"]'")); strings.Contains(p, "SCAN tasks") {
		t.Errorf("it walks the tasks:\n%s", p)
	}
}

// plan returns SQLite's query plan.
func plan(t *testing.T, l *Ledger, query string) string {
	t.Helper()
	return strings.Join(must[[]string](t)(read(ctxFor(t), l.DB(), "explain", func(r *sql.Rows) (string, error) {
		var id, parent, unused int
		var detail string
		err := r.Scan(&id, &parent, &unused, &detail)
		return detail, err
	}, "EXPLAIN QUERY PLAN "+query)), "\n")
}

// No part of it scans the tasks, or sorts more of them than it returns or are
// stuck.
func TestBoardWalksNoTable(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	plan := plan(t, l, strings.ReplaceAll(sqlBoard, "?1", "100"))
	for _, kind := range []string{"completedAt DESC", "completedAt, seq"} {
		if !strings.Contains(sqlBoard, kind) {
			t.Fatalf("the statement does not order by %s", kind)
		}
	}
	sorts := strings.Count(plan, "TEMP B-TREE FOR ORDER BY")
	if strings.Contains(plan, "SCAN tasks") || sorts != 2 { // of the result, and of the stuck tasks
		t.Errorf("%d sorts:\n%s", sorts, plan)
	}
}

// The board is read again after every change: no statement scans the tasks, and
// the counts are a row that triggers maintain.
func TestLongBoardsAreNotWalked(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	for name, q := range map[string]string{
		"the numbers": sqlCounts, "what is free": sqlFree, "tasks in hand": sqlInHand, "tasks that are named": sqlBoardOf,
		"what a worker may take": sqlRunnable, "what members may take": sqlTakeable, "what is ready": sqlReadyTasks, "a worker's claim": sqlClaimRunnable,
	} {
		p := plan(t, l, strings.NewReplacer("?1", "'[]'", "?2", "'[]'", "?3", "1", "?4", "1", "?5", "1", "?", "1").Replace(q))
		for step := range strings.Lines(p) {
			// An index that contains only matching rows is read up to its first
			// entry.
			step = strings.TrimSpace(step)
			if strings.HasPrefix(step, "SCAN tasks") && step != "SCAN tasks USING INDEX idx_tasks_command" &&
				step != "SCAN tasks USING COVERING INDEX idx_tasks_command" && step != "SCAN tasks USING INDEX idx_tasks_ready" &&
				step != "SCAN tasks USING COVERING INDEX idx_tasks_ready" {
				t.Errorf("%s: %s\n%s", name, step, p)
			}
		}
		if (q == sqlRunnable || q == sqlClaimRunnable) && strings.Contains(p, "idx_tasks_ready") {
			t.Errorf("%s walks ready tasks without a command:\n%s", name, p)
		}
	}
}

// Counts that do not match the tasks are detected and recomputed.
func TestNumbersOfTheBoardAreRepaired(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a")
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Ref: "x", Subject: "one"}, {Subject: "two"}, {Subject: "three", DependsOn: []string{"x"}}}, "lead"))
	end(t, l, false, 2)
	want := Counts{Pending: 2, Ready: 1, Completed: 1}
	for _, harm := range []string{"UPDATE task_counts SET ready = 7", "DELETE FROM task_counts"} {
		if got := must[Counts](t)(l.Counts(ctx)); got != want {
			t.Errorf("%+v; want %+v", got, want)
		}
		ok(t, sqlExec(t, l.DB(), harm))
		if problems := must[[]string](t)(l.Check(ctx)); len(problems) != 1 || !strings.Contains(problems[0], "numbers of the board") {
			t.Errorf("after %s: %q", harm, problems)
		}
		if fixed := must[[]string](t)(l.Repair(ctx)); len(fixed) != 1 {
			t.Errorf("after %s: %q", harm, fixed)
		}
	}
	if got := must[Counts](t)(l.Counts(ctx)); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
	if problems := must[[]string](t)(l.Check(ctx)); len(problems) != 0 {
		t.Errorf("%q", problems)
	}
}

// A member's current task is the one that it works on, before one that it has
// handed in, and that before one that is assigned to it: the shell of a member
// that goes on while its work is verified has the number and the attempt of what
// it goes on with.
func TestInHand(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a", "b", "c")
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{
		{Subject: "done"}, {Subject: "given to a"}, {Subject: "a works", Verify: "make check"}, {Subject: "a works too", Verify: "make check"},
		{Ref: "x", Subject: "free"}, {Subject: "given to b", DependsOn: []string{"x"}}, {Subject: "given to b too"},
	}, "lead"))
	end(t, l, false, 1)
	for id, owner := range map[string]string{"2": "s-a", "6": "s-b", "7": "s-b"} {
		must[Task](t)(l.Reassign(ctx, id, owner, "lead"))
	}
	for _, id := range []string{"3", "4"} {
		must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: id}))
	}
	for _, c := range []struct{ handIn, want string }{{"", "3"}, {"3", "4"}, {"4", "3"}} {
		if c.handIn != "" {
			must[[]string](t)(l.Complete(ctx, TaskRef{ID: c.handIn, Owner: "s-a", Attempt: 1}, Result{Summary: "done"}))
		}
		got := map[string]string{}
		for session, task := range must[map[string]Task](t)(l.InHand(ctx, []string{"s-a", "s-b", "s-c"})) {
			got[session] = task.ID
		}
		if diff := cmp.Diff(map[string]string{"s-a": c.want, "s-b": "6"}, got); diff != "" {
			t.Errorf("%q is handed in (-want +got):\n%s", c.handIn, diff)
		}
	}
}
