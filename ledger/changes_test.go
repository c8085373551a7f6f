package ledger

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// childEvent appends one event to the ledger at args[0].
func childEvent(args []string) error {
	db, err := Open(context.Background(), args[0], Options{})
	if err != nil {
		return err
	}
	if _, err := New(db, Direct(db)).Event(context.Background(), Event{What: args[1]}); err != nil {
		return err
	}
	return db.Close()
}

func awaitEvent(t *testing.T, l *Ledger, wakes <-chan struct{}, what string) {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		if len(must[[]Event](t)(l.Events(ctxFor(t), 0, 0, EventFilter{What: what}))) > 0 {
			return
		}
		select {
		case <-wakes:
		case <-deadline:
			t.Fatalf("nobody told of %s", what)
		}
	}
}

// A commit of any process wakes the watch, and can be read.
func TestChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	db := openAt(t, path)
	l := New(db, Direct(db))
	wakes, stop, err := l.Changes(ctxFor(t))
	ok(t, err)
	defer stop()
	<-wakes // the first one is for the existing contents
	for _, what := range []string{"one", "two", "three"} {
		cmd := child(t, "event", path, what)
		ok(t, cmd.Start())
		awaitEvent(t, l, wakes, what)
		ok(t, cmd.Wait())
	}
	must[int64](t)(l.Event(ctxFor(t), Event{What: "own"}))
	awaitEvent(t, l, wakes, "own")
}

// Another DB in the same process is equivalent to another process; each of many
// quick commits is followed by a wake.
func TestChangesMissesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	writer := openAt(t, path)
	w := New(writer, Direct(writer))
	db := openAt(t, path)
	l := New(db, Direct(db))
	wakes, stop, err := l.Changes(ctxFor(t))
	ok(t, err)
	defer stop()
	for i := range 200 {
		what := "n" + itoa(i)
		must[int64](t)(w.Event(ctxFor(t), Event{What: what}))
		if i%3 == 0 {
			awaitEvent(t, l, wakes, what)
		}
	}
	awaitEvent(t, l, wakes, "n199")
}

func TestChangesEnd(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	ended := func(wakes <-chan struct{}) {
		t.Helper()
		deadline := time.After(5 * time.Minute)
		for {
			select {
			case _, open := <-wakes:
				if !open {
					return
				}
			case <-deadline:
				t.Fatal("the watch did not end")
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	wakes, stop, err := l.Changes(ctx)
	ok(t, err)
	cancel()
	ended(wakes)
	stop()

	wakes, stop, err = l.Changes(ctxFor(t))
	ok(t, err)
	stop()
	stop()
	ended(wakes)

	wakes, _, err = l.Changes(ctxFor(t))
	ok(t, err)
	ok(t, l.DB().Close())
	ended(wakes)
	if _, _, err := l.Changes(ctxFor(t)); err == nil {
		t.Error("watches a closed ledger")
	}
}

// All consumers of a DB share one watch, which ends with the last of them; the end of one does not
// disturb the others.
func TestChangesAreShared(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	writer := openAt(t, path)
	w := New(writer, Direct(writer))
	db := openAt(t, path)
	l := New(db, Direct(db))
	first, cancel := context.WithCancel(context.Background())
	defer cancel()
	gone, stopGone, err := l.Changes(first)
	ok(t, err)
	wakes, stop, err := l.Changes(ctxFor(t))
	ok(t, err)
	shared := db.watch
	cancel()
	for range gone { // until it is closed
	}
	must[int64](t)(w.Event(ctxFor(t), Event{What: "after"}))
	awaitEvent(t, l, wakes, "after")
	if db.watch != shared || len(db.consumers) != 1 {
		t.Errorf("%d consumers; the same watch: %t", len(db.consumers), db.watch == shared)
	}
	stopGone()
	stop()
	if db.watch != nil {
		t.Error("the watch runs without a consumer")
	}
	wakes, stop, err = l.Changes(ctxFor(t))
	ok(t, err)
	defer stop()
	must[int64](t)(w.Event(ctxFor(t), Event{What: "again"}))
	awaitEvent(t, l, wakes, "again")
}

// Consumers may come and go at any time, while others commit and while the DB is closed.
func TestChangesAtOnce(t *testing.T) {
	t.Parallel()
	db := openAt(t, filepath.Join(t.TempDir(), "ledger.db"))
	l := New(db, Direct(db))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 20 {
				ctx, cancel := context.WithCancel(context.Background())
				wakes, stop, err := l.Changes(ctx)
				if err != nil {
					cancel()
					if !team.IsCode(err, team.CodeUnavailable) {
						t.Error(err)
					}
					return
				}
				<-wakes
				if (i+n)%2 == 0 {
					cancel()
				}
				stop()
				cancel()
				if i == 0 && n == 15 {
					if err := db.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if db.watch != nil || len(db.consumers) != 0 {
		t.Errorf("%d consumers are left, a watch: %t", len(db.consumers), db.watch != nil)
	}
}
