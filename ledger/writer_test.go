package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
)

func startGroup(t testing.TB, db *DB) *Group {
	t.Helper()
	g := NewGroup(db)
	ok(t, g.Start(ctxFor(t)))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := g.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return g
}

func claimOp(id string) Op {
	return Op{ID: id, Name: opTaskClaim, Args: raw(`{"owner":"s-a"}`)}
}

func taskID(t testing.TB, res json.RawMessage) string {
	t.Helper()
	var task Task
	ok(t, json.Unmarshal(res, &task))
	return task.ID
}

// The same id with another writer returns the first result.
func TestOpIsAppliedOnce(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	g := startGroup(t, l.DB())
	must[[]Task](t)(l.CreateTasks(ctx, make12(), "lead"))
	op := claimOp("one")
	first := must[json.RawMessage](t)(g.Write(ctx, op))
	again := must[json.RawMessage](t)(Direct(l.DB()).Write(ctx, op))
	if diff := cmp.Diff(string(first), string(again)); diff != "" {
		t.Error(diff)
	}
	if next := must[json.RawMessage](t)(g.Write(ctx, claimOp("two"))); taskID(t, next) != "2" {
		t.Errorf("%s", next)
	}
	// A refusal is not stored: the same operation may succeed later.
	blocked := Op{ID: "three", Name: opTaskClaim, Args: raw(`{"owner":"s-b","id":"1"}`)}
	_, err := g.Write(ctx, blocked)
	refused(t, err, team.CodeConflict, team.ReasonAlreadyClaimed)
	must[[]string](t)(l.ReleaseOwner(ctx, "s-a", "test"))
	if res := must[json.RawMessage](t)(g.Write(ctx, blocked)); taskID(t, res) != "1" {
		t.Errorf("%s", res)
	}
}

func TestAppliedOpsArePruned(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	ok(t, sqlExec(t, l.DB(), "DELETE FROM applied_ops")) // they have the real time
	c := &clock{time.UnixMilli(1_000_000_000)}
	l.now = c.now
	// Only results of a Writer elsewhere are stored, because the operation may
	// be repeated.
	direct := l.w
	l.w = writerFunc(func(ctx context.Context, op Op) (json.RawMessage, error) { return direct.Write(ctx, op) })
	for range 20 {
		must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "s"}}, "lead"))
	}
	if n := sqlRow[int](t, l.DB(), "SELECT count(*) FROM applied_ops"); n != 20 {
		t.Errorf("%d results are kept, want 20", n)
	}
	c.advance(2 * time.Hour)
	for range 8 {
		must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "s"}}, "lead"))
	}
	if n := sqlRow[int](t, l.DB(), "SELECT count(*) FROM applied_ops WHERE at < ?", c.at.Add(-time.Hour).UnixMilli()); n != 0 {
		t.Errorf("%d old results", n)
	}
}

func TestSwitching(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, make12(), "lead"))
	fallback := Direct(l.DB())
	applied := writerFunc(func(ctx context.Context, op Op) (json.RawMessage, error) {
		if _, err := fallback.Write(ctx, op); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("the answer was lost: %w", ErrWriterGone)
	})
	lost := writerFunc(func(context.Context, Op) (json.RawMessage, error) { return nil, ErrWriterGone })
	denied := errors.New("denied")
	refusing := writerFunc(func(context.Context, Op) (json.RawMessage, error) { return nil, denied })
	for i, tt := range []struct {
		primary Writer
		err     error
	}{{applied, nil}, {lost, nil}, {nil, nil}, {fallback, nil}, {refusing, denied}} {
		w := Switching(func(context.Context) (Writer, bool) { return tt.primary, tt.primary != nil }, fallback)
		task, err := New(l.DB(), w).Claim(ctx, ClaimIn{Owner: "s-a"})
		if !errors.Is(err, tt.err) {
			t.Errorf("%d: %v", i, err)
		}
		if err == nil && task.ID != itoa(i+1) {
			t.Errorf("%d: claimed %s: an operation was lost or applied twice", i, task.ID)
		}
	}
}

type writerFunc func(context.Context, Op) (json.RawMessage, error)

func (f writerFunc) Write(ctx context.Context, op Op) (json.RawMessage, error) { return f(ctx, op) }

// One refused operation of a group has no effect, and does not harm the others.
func TestGroupRollsBackOneOnly(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	batch := []*job{
		{op: Op{Name: opTasksCreate, Args: raw(`{"tasks":[{"subject":"1"}]}`)}},
		{op: Op{Name: opTasksCreate, Args: raw(`{"tasks":[{"subject":"2"},{"subject":"3","dependsOn":["99"]}]}`)}},
		{op: Op{Name: "no.such"}},
		{op: Op{Name: opTasksCreate, Args: raw(`{"tasks":7}`)}},
		{op: Op{Name: opTasksCreate, Args: raw(`{"tasks":[{"subject":"4"}]}`)}},
	}
	ok(t, l.DB().transact(ctx, batch))
	refused(t, batch[1].err, team.CodeNotFound, team.ReasonTaskNotFound)
	refused(t, batch[2].err, team.CodeInvalid, "")
	refused(t, batch[3].err, team.CodeInvalid, "")
	ok(t, batch[0].err)
	ok(t, batch[4].err)
	if got := ids(must[[]Task](t)(l.Tasks(ctx, TaskFilter{}))); !cmp.Equal(got, []string{"1", "2"}) {
		t.Errorf("tasks %v", got)
	}
	sound(t, l)
}

func TestPanicIsAnError(t *testing.T) {
	l := newTeam(t, "a")
	ops["test.panic"] = opSpec{run: func(*tx, json.RawMessage) (any, error) { panic("boom") }}
	defer delete(ops, "test.panic")
	_, err := Direct(l.DB()).Write(ctxFor(t), Op{Name: "test.panic"})
	refused(t, err, team.CodeInternal, "")
	must[[]Task](t)(l.CreateTasks(ctxFor(t), make12(), "lead"))
}

// While another process holds the lock, a write waits for the write slot, then
// returns "busy".
func TestFault33BusyIsTypedAndBounded(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/ledger.db"
	openAt(t, path)
	db := openAt(t, path) // the limit also holds for the write that succeeds
	lock := must[*filelock.Held](t)(filelock.Lock(ctxFor(t), db.opts.LockPath))
	_, err := Direct(db).Write(ctxFor(t), Op{Name: opEvent, Args: raw(`{"what":"x"}`)})
	refused(t, err, team.CodeTimeout, team.ReasonBusy)
	g := startGroup(t, db)
	_, err = g.Write(ctxFor(t), Op{Name: opEvent, Args: raw(`{"what":"x"}`)})
	refused(t, err, team.CodeTimeout, team.ReasonBusy)
	ok(t, lock.Unlock())
	must[json.RawMessage](t)(g.Write(ctxFor(t), Op{Name: opEvent, Args: raw(`{"what":"x"}`)}))
}

// A program that does not take the file lock holds SQLite's own.
func TestFault33ForeignTransaction(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/ledger.db"
	other := openAt(t, path)
	db := openAt(t, path)
	ok(t, sqlExec(t, other, "BEGIN IMMEDIATE"))
	op := Op{Name: opEvent, Args: raw(`{"what":"x"}`)}
	db.opts.BusyTimeout = time.Second // not before: it is the limit for opening the ledger, too
	_, err := Direct(db).Write(ctxFor(t), op)
	refused(t, err, team.CodeTimeout, team.ReasonBusy)
	db.opts.BusyTimeout = defaultBusy
	ok(t, sqlExec(t, other, "COMMIT"))
	must[json.RawMessage](t)(Direct(db).Write(ctxFor(t), op))
}

func TestGroupLife(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	op := Op{Name: opEvent, Args: raw(`{"what":"x"}`)}
	g := NewGroup(l.DB())
	if _, err := g.Write(ctx, op); !errors.Is(err, ErrWriterGone) {
		t.Errorf("before start: %v", err)
	}
	ok(t, g.Start(ctx))
	if err := g.Start(ctx); err == nil {
		t.Error("started twice")
	}
	must[json.RawMessage](t)(g.Write(ctx, op))
	ok(t, g.Stop(ctx))
	ok(t, g.Stop(ctx))
	if _, err := g.Write(ctx, op); !errors.Is(err, ErrWriterGone) {
		t.Errorf("after stop: %v", err)
	}
	ok(t, NewGroup(l.DB()).Stop(ctx))
}

// An operation that has not begun when its context ends is not applied; one
// that has begun is answered.
func TestGroupSkipsWhatWasGivenUp(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	ops["test.hold"] = opSpec{run: func(t *tx, args json.RawMessage) (any, error) {
		close(begun)
		<-release
		return ops[opEvent].run(t, args)
	}}
	defer delete(ops, "test.hold")
	l := newTeam(t, "a")
	g := startGroup(t, l.DB())
	var wg sync.WaitGroup
	first, giveUp := context.WithCancel(ctxFor(t))
	wg.Go(func() {
		if _, err := g.Write(first, Op{Name: "test.hold", Args: raw(`{"what":"begun"}`)}); err != nil {
			t.Error(err)
		}
	})
	<-begun
	giveUp()
	ctx, cancel := context.WithCancel(ctxFor(t))
	given := make(chan error, 1)
	wg.Go(func() {
		_, err := g.Write(ctx, Op{Name: opEvent, Args: raw(`{"what":"given"}`)})
		given <- err
	})
	eventually(t, "the second operation waits", func() bool { return len(g.queue) == 1 })
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(release)
	wg.Wait()
	ok(t, l.Checkpoint(ctxFor(t))) // after the group's transaction
	var got []string
	for _, e := range must[[]Event](t)(l.Events(ctxFor(t), 0, 0, EventFilter{})) {
		if e.What == "begun" || e.What == "given" {
			got = append(got, e.What)
		}
	}
	if diff := cmp.Diff([]string{"begun"}, got); diff != "" {
		t.Error(diff)
	}
}

// A group waits briefly for the writers of the last group, and not at all once
// they have arrived.
func TestGroupWaitsForItsLast(t *testing.T) {
	t.Parallel()
	next := func() *waiting { return &waiting{answer: make(chan struct{})} }
	for _, tt := range []struct {
		name            string
		expected, there int
		later           int
		patience        time.Duration
		want            int
	}{
		{"alone", 1, 0, 0, time.Hour, 1},
		{"all are there", 3, 2, 0, time.Hour, 3},
		{"more are there", 2, 4, 0, time.Hour, 5},
		{"some come later", 4, 1, 2, time.Hour, 4},
		{"some do not come", 4, 1, 0, time.Millisecond, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewGroup(nil)
			g.patience = tt.patience
			for range tt.there {
				g.queue <- next()
			}
			got := make(chan []*waiting, 1)
			go func() { got <- g.collect(next(), tt.expected) }()
			eventually(t, "what was there is taken", func() bool { return len(g.queue) == 0 })
			for range tt.later {
				g.queue <- next()
			}
			select {
			case batch := <-got:
				if len(batch) != tt.want {
					t.Errorf("%d are in the group, not %d", len(batch), tt.want)
				}
			case <-time.After(5 * time.Minute):
				t.Error("it waits on")
				close(g.queue)
			}
		})
	}
	// The end of the writer ends the wait; abandoned operations are skipped.
	g := NewGroup(nil)
	g.patience = time.Hour
	gone := next()
	gone.state.Store(given)
	g.queue <- gone
	close(g.queue)
	if batch := g.collect(next(), 3); len(batch) != 1 {
		t.Errorf("%d", len(batch))
	}
}

func TestWriteEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	lock := must[*filelock.Held](t)(filelock.Lock(ctxFor(t), l.DB().opts.LockPath))
	defer func() { ok(t, lock.Unlock()) }()
	ctx, cancel := context.WithCancel(ctxFor(t))
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := l.Event(ctx, Event{What: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := l.Tasks(ctx, TaskFilter{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestEveryOpRefusesNonsense(t *testing.T) {
	t.Parallel()
	db := openAt(t, t.TempDir()+"/ledger.db")
	for name := range ops {
		for _, args := range []string{``, `nope`, `"x"`, `[1]`} {
			_, err := Direct(db).Write(ctxFor(t), Op{Name: name, Args: raw(args)})
			if team.IsCode(err, team.CodeInternal) {
				t.Errorf("%s(%s): %v", name, args, err)
			}
		}
	}
}

// A full disk refuses what does not fit, with a coded error, and nothing else
// is lost.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	g := startGroup(t, l.DB())
	gl := New(l.DB(), g)
	pages := sqlRow[int](t, l.DB(), "PRAGMA page_count")
	ok(t, sqlExec(t, l.DB(), fmt.Sprintf("PRAGMA max_page_count = %d", pages+4)))
	big := NewTask{Subject: "big", Description: string(make([]byte, 9000))}
	var full int
	for range 8 {
		if _, err := gl.CreateTasks(ctx, []NewTask{big}, "lead"); err != nil {
			refused(t, err, team.CodeUnavailable, "disk_full")
			full++
		}
	}
	var wg sync.WaitGroup
	for range 8 { // a group in which some do not fit
		wg.Go(func() {
			if _, err := gl.CreateTasks(ctx, []NewTask{big, big, big, big}, "lead"); team.ReasonOf(err) != "disk_full" {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	made := must[Counts](t)(l.Counts(ctx)).Total()
	if full == 0 || made != 8-full {
		t.Errorf("%d refused, %d made", full, made)
	}
	ok(t, sqlExec(t, l.DB(), "PRAGMA max_page_count = 1000000"))
	must[[]Task](t)(gl.CreateTasks(ctx, []NewTask{big}, "lead"))
	sound(t, l)
}
