package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
)

// Who has written may write again without standing in line: between two processes
// that take turns at each write, a write is mostly waking the other one up and reading
// again what that one has changed.
const (
	// turnSlice bounds how long others wait for one that keeps writing.
	turnSlice = 4 * time.Millisecond
	// turnLinger is how long the lock is kept for a write that does not come.
	turnLinger = time.Millisecond
)

// turn is this process's place among the writers of the ledger. All of it is used by
// who has the turn only.
type turn struct {
	token  chan struct{} // of this process's goroutines; blocked senders queue in order
	held   *filelock.Held
	since  time.Time // when held was taken
	linger *time.Timer
}

// write runs fn as the only writer of all processes, with a connection.
func (db *DB) write(ctx context.Context, doing string, fn func() error) error {
	select {
	case db.turn.token <- struct{}{}:
	case <-ctx.Done():
		return busyOr(ctx.Err(), doing)
	}
	defer func() { <-db.turn.token }()
	if db.prep == nil {
		return errClosed()
	}
	if err := db.writer(ctx); err != nil {
		return db.orReplaced(err)
	}
	if err := db.lock(ctx); err != nil {
		return db.orReplaced(busyOr(err, doing))
	}
	err := db.orReplaced(fn())
	if unlockErr := db.unlock(); err != nil {
		err = errors.Join(err, unlockErr) // what is committed stays a success
	}
	return err
}

// lock takes the lock of writers, or keeps the one that was not freed yet.
func (db *DB) lock(ctx context.Context) error {
	if db.turn.held != nil {
		db.turn.linger.Stop()
		return nil
	}
	held, err := filelock.Lock(ctx, db.opts.LockPath)
	if err == nil {
		db.turn.held, db.turn.since = held, time.Now()
	}
	return err
}

// unlock frees it at the end of the slice, or when nothing is written for a moment.
func (db *DB) unlock() error {
	if time.Since(db.turn.since) >= turnSlice {
		return db.free()
	}
	if db.turn.linger == nil {
		db.turn.linger = time.AfterFunc(turnLinger, db.rest)
	} else {
		db.turn.linger.Reset(turnLinger)
	}
	return nil
}

// rest frees the lock once nobody of this process writes. It waits for its turn: who
// has it may have started the timer and not yet gone.
func (db *DB) rest() {
	db.turn.token <- struct{}{}
	_ = db.free()
	<-db.turn.token
}

func (db *DB) free() error {
	if db.turn.held == nil {
		return nil
	}
	held := db.turn.held
	db.turn.held = nil
	return held.Unlock()
}
