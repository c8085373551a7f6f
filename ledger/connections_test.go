package ledger

import (
	"context"
	"database/sql"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mattn/go-sqlite3"
)

// Writes stay in the log until it reaches SQLite's threshold in pages; the
// write that exceeds it moves them into the database.
func TestCheckpointAtItsThreshold(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := t.Context() // no deadline of its own: the disk may be slow
	ok(t, l.Checkpoint(ctx))
	size := func() int64 {
		t.Helper()
		return must[os.FileInfo](t)(os.Stat(l.DB().Path())).Size()
	}
	before := size()
	batch := make([]NewTask, 200)
	for i := range batch {
		batch[i] = NewTask{Subject: "t", Description: strings.Repeat("d", 8<<10)}
	}
	must[[]Task](t)(l.CreateTasks(ctx, batch[:20], "a")) // about 60 pages
	if now := size(); now != before {
		t.Errorf("the database went from %d to %d bytes below the threshold", before, now)
	}
	for range 4 {
		must[[]Task](t)(l.CreateTasks(ctx, batch, "a"))
	}
	if now := size(); now < before+1<<20 {
		t.Errorf("the database has %d bytes after 6 MB of writes, %d before", now, before)
	}
}

// An operation that is refused because of a lock is repeated after intervals
// that double up to 50 ms, each varied at random by up to half.
func TestPausesGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var tries []time.Time
		err := retryBusy(ctx, func() error {
			if tries = append(tries, time.Now()); len(tries) == 12 {
				cancel()
			}
			return sqlite3.Error{Code: sqlite3.ErrBusy}
		})
		if !isBusy(err) || len(tries) != 12 {
			t.Fatalf("%v after %d tries", err, len(tries))
		}
		wait := time.Millisecond
		for i := 1; i < len(tries); i++ {
			if got := tries[i].Sub(tries[i-1]); got < wait/2 || got >= wait/2+wait {
				t.Errorf("pause %d is %s, want %s and half of it more or less", i, got, wait)
			}
			wait = min(2*wait, 50*time.Millisecond)
		}
	})
}

// The number of connections for reading is limited to the size of the pool, and
// they are reused; the writer keeps its own.
func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := t.Context() // no deadline of its own: the disk may be slow
	db := l.DB()
	look := func() { must[[]Member](t)(l.Members(ctx, false)) }
	look()
	pool := must[*sql.DB](t)(db.reader())
	for range 20 {
		look()
	}
	if s := pool.Stats(); s.OpenConnections != 1 || s.MaxIdleClosed+s.MaxLifetimeClosed+s.MaxIdleTimeClosed != 0 {
		t.Errorf("one after the other: %+v", s)
	}
	var wg sync.WaitGroup
	for range 8 * db.opts.Readers {
		wg.Go(func() {
			for range 10 {
				if _, err := l.Members(ctx, false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s := pool.Stats()
	if s.OpenConnections > db.opts.Readers || s.MaxIdleClosed != 0 || s.InUse != 0 {
		t.Errorf("at once: %+v, %d at most", s, db.opts.Readers)
	}
	conn := db.conn
	for range 5 {
		must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "x"}}, "a"))
	}
	if db.conn != conn || db.wdb.Stats().OpenConnections != 1 {
		t.Errorf("the writer has %+v", db.wdb.Stats())
	}
}
