package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
)

// A process that has written may write again without queueing for the lock: if
// two processes alternate at each write, most of the cost is waking the other
// process and rereading what it has changed.
const (
	// turnSlice limits how long others wait for a process that keeps writing.
	turnSlice = 4 * time.Millisecond
	// turnLinger is how long the lock is kept in case another write follows.
	turnLinger = time.Millisecond
)

// turn is this process's write slot among the writers of the ledger. All of it
// is used only while holding the slot.
type turn struct {
	token  chan struct{} // serialises this process's goroutines; blocked senders queue in order
	held   *filelock.Held
	since  time.Time // when held was taken
	linger *time.Timer
}

// write runs fn with a connection, as the only writer of all processes.
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
		err = errors.Join(err, unlockErr) // what is committed remains a success
	}
	return err
}

// lock takes the lock of writers, or keeps it if it was not released yet.
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

// unlock releases the lock at the end of the slice, or once nothing is written
// for a moment.
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

// rest releases the lock once no goroutine of this process writes. It waits for
// the write slot, whose holder may have started the timer and not finished yet.
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
