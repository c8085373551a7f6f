package ledger

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/teamctl/teamctl/team"
)

// foreign returns a connection of a program that does not take the file lock.
func foreign(t *testing.T, path string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=0")
	ok(t, err)
	t.Cleanup(func() { ok(t, db.Close()) })
	c, err := db.Conn(ctxFor(t))
	ok(t, err)
	t.Cleanup(func() { ok(t, c.Close()) })
	return c
}

// While a transaction writes, readers read the previous state, concurrently and
// without an error; after its end they read what it wrote. Meanwhile a second
// writer is blocked, and readers are not: SQLite calls this state RESERVED.
func TestReadersBesideAWriter(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	path := filepath.Join(t.TempDir(), "ledger.db")
	db := openAt(t, path)
	l := New(db, Direct(db))
	must[TeamRow](t)(l.CreateTeam(ctx, TeamRow{Key: "demo", Name: "Demo", LeadSession: "agent:lead:team:demo"}))
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "before"}}, "lead"))

	w := foreign(t, path)
	for _, q := range []string{"BEGIN IMMEDIATE", "UPDATE tasks SET subject = 'after'"} {
		_, err := w.ExecContext(ctx, q)
		ok(t, err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				list, err := l.Tasks(ctx, TaskFilter{Status: team.TaskPending})
				if err != nil || len(list) != 1 || list[0].Subject != "before" {
					t.Errorf("beside a writer: %+v, %v", list, err)
					return
				}
			}
		})
	}
	wg.Wait()
	_, err := foreign(t, path).ExecContext(ctx, "BEGIN IMMEDIATE")
	var busy sqlite3.Error
	if !errors.As(err, &busy) || busy.Code != sqlite3.ErrBusy {
		t.Errorf("a second writer: %v", err)
	}
	_, err = w.ExecContext(ctx, "COMMIT")
	ok(t, err)
	if list := must[[]Task](t)(l.Tasks(ctx, TaskFilter{})); list[0].Subject != "after" {
		t.Errorf("after the commit: %s", list[0].Subject)
	}
}

// A claim that finds the database busy is retried until it is not, and then has
// one winner; it does not return an error.
func TestClaimWaitsForAForeignWriter(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	path := filepath.Join(t.TempDir(), "ledger.db")
	db := openAt(t, path)
	l := New(db, Direct(db))
	must[TeamRow](t)(l.CreateTeam(ctx, TeamRow{Key: "demo", Name: "Demo", LeadSession: "agent:lead:team:demo"}))
	for _, name := range []string{"a", "b"} {
		_, _, err := l.AddMember(ctx, Member{Name: name, SessionKey: "s-" + name}, true)
		ok(t, err)
	}
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "one"}}, "lead"))
	w := foreign(t, path)
	_, err := w.ExecContext(ctx, "BEGIN IMMEDIATE")
	ok(t, err)
	type claim struct {
		task *Task
		err  error
	}
	got := make(chan claim, 2)
	for _, owner := range []string{"s-a", "s-b"} {
		go func() {
			task, err := l.Claim(ctx, ClaimIn{Owner: owner, ID: "1"})
			got <- claim{task, err}
		}()
	}
	held, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	select {
	case c := <-got:
		t.Fatalf("it did not wait: %+v", c)
	case <-held.Done():
	}
	_, err = w.ExecContext(ctx, "COMMIT")
	ok(t, err)
	won := 0
	for range 2 {
		c := <-got
		if c.err == nil && c.task != nil {
			won++
			continue
		}
		refused(t, c.err, team.CodeConflict, team.ReasonAlreadyClaimed)
	}
	if won != 1 {
		t.Errorf("%d have the task", won)
	}
	sound(t, l)
}

// A chain and a diamond of tasks become ready one completion at a time, and
// blockedBy is always the list of uncompleted dependencies.
func TestCompletionFreesWhatWaits(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a")
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{
		{Ref: "a", Subject: "a"}, {Ref: "b", Subject: "b", DependsOn: []string{"a"}}, {Ref: "c", Subject: "c", DependsOn: []string{"a"}},
		{Subject: "d", DependsOn: []string{"b", "c"}},
	}, "lead"))
	blocked := func() (s string) {
		for _, task := range must[[]Task](t)(l.Tasks(ctx, TaskFilter{})) {
			s += task.ID + "<" + strings.Join(task.BlockedBy, "") + " "
		}
		return s
	}
	for _, step := range []struct{ id, before, free string }{
		{"1", "1< 2<1 3<1 4<23 ", "2 3"}, {"2", "1< 2< 3< 4<23 ", ""}, {"3", "1< 2< 3< 4<3 ", "4"}, {"4", "1< 2< 3< 4< ", ""},
	} {
		if got := blocked(); got != step.before {
			t.Fatalf("before %s: %s, want %s", step.id, got, step.before)
		}
		for _, later := range []string{"2", "3", "4"} {
			if !strings.Contains(step.before, later+"< ") {
				_, err := l.Claim(ctx, ClaimIn{Owner: "s-a", ID: later})
				refused(t, err, team.CodeConflict, team.ReasonBlocked)
			}
		}
		task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: step.id}))
		if free := strings.Join(must[[]string](t)(l.Complete(ctx, ref(task), Result{})), " "); free != step.free {
			t.Errorf("%s frees %q, want %q", step.id, free, step.free)
		}
	}
}
