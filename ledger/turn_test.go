package ledger

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
)

// The lock is kept between consecutive writes, but no longer: at rest, and once
// a ledger is closed, it is released.
func TestTurnEnds(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	db := l.DB()
	ctx := ctxFor(t)
	eventually(t, "the lock is kept after a write that took no time", func() bool {
		ok(t, db.write(ctx, "nothing", func() error { return nil }))
		return must[bool](t)(filelock.IsHeld(db.opts.LockPath))
	})
	eventually(t, "the lock is free at rest", func() bool { return !must[bool](t)(filelock.IsHeld(db.opts.LockPath)) })
	must[int64](t)(l.Event(ctx, Event{What: "x"}))
	ok(t, db.Close())
	if must[bool](t)(filelock.IsHeld(db.opts.LockPath)) {
		t.Error("a closed ledger holds the lock")
	}
}

// A write that ends after the slice releases the lock at once, however soon the
// next one follows: it does not linger as after a short one.
func TestTurnIsBounded(t *testing.T) {
	t.Parallel()
	db := newLedger(t).DB()
	ctx := ctxFor(t)
	for range 50 {
		ok(t, db.write(ctx, "a slice", func() error {
			<-time.After(time.Until(db.turn.since.Add(turnSlice)))
			return nil
		}))
		if must[bool](t)(filelock.IsHeld(db.opts.LockPath)) {
			t.Fatal("the lock is kept after the slice")
		}
	}
}

// A process that writes without a pause does not exclude the others.
func TestOthersWriteBesideABusyOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	busy, calm := New(openAt(t, path), nil), New(openAt(t, path), nil)
	busy.w, calm.w = Direct(busy.DB()), Direct(calm.DB())
	ctx := ctxFor(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := busy.Event(ctx, Event{What: "busy"}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 20 {
		must[int64](t)(calm.Event(ctx, Event{What: "calm"}))
	}
}

// A checkpoint may be the first operation of a process on the ledger.
func TestCheckpointFirst(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	openAt(t, path)
	db := must[*DB](t)(Open(ctxFor(t), path, Options{}))
	ok(t, New(db, Direct(db)).Checkpoint(ctxFor(t)))
	ok(t, db.Close())
	refused(t, New(db, Direct(db)).Checkpoint(ctxFor(t)), team.CodeUnavailable, "closed")
}
