package services

import (
	"context"
	"errors"
	"time"

	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
)

// cutWait bounds the wait for the write slot of the ledger.
const cutWait = time.Second

// WALWatch keeps the write-ahead log of the ledger small. SQLite starts the log again once
// everything in it is in the database and nobody reads it. A reader that leaves its transaction
// open (a person's sqlite3, a program that hangs) makes it grow without end. Nothing waits for
// such a reader; the log is emptied once it has ended, and until then its size is logged.
type WALWatch struct {
	loop.Quiet
	team        loop.Team
	much        int64 // bytes
	pause, rest time.Duration
	cutting     bool
}

// NewWALWatch returns the service: a log of more than much bytes is emptied after pause, in
// which present readers end. After an attempt that a reader was in the way of, the next one
// comes after rest: each holds up writers for a moment.
func NewWALWatch(t loop.Team, much int64, pause, rest time.Duration) *WALWatch {
	return &WALWatch{team: t, much: much, pause: pause, rest: rest}
}

// Looked compares the size of the log after changes.
func (w *WALWatch) Looked(bool) {
	if w.cutting || w.Bus.Armed("log") {
		return
	}
	if size, err := w.team.Ledger.WALSize(); err == nil && size > w.much {
		w.Bus.After("log", w.pause, w.cut)
	}
}

// cut empties the log if that can be done now.
func (w *WALWatch) cut() {
	w.cutting = true
	w.Bus.Go("empty the ledger's log", func(ctx context.Context) func() {
		soon, cancel := context.WithTimeout(ctx, cutWait)
		defer cancel()
		err := w.team.Ledger.Checkpoint(soon)
		size, serr := w.team.Ledger.WALSize()
		switch {
		case ctx.Err() != nil:
		case team.ReasonOf(err) == team.ReasonBusy:
			w.team.Log.Warn("the ledger's log grows: a program reads the ledger and does not end", "bytes", size)
		case err != nil || serr != nil:
			w.team.Log.Warn("empty the ledger's log", "err", errors.Join(err, serr))
		}
		return func() {
			w.cutting = false
			if err != nil {
				w.Bus.After("log", w.rest, func() { w.Looked(false) })
				return
			}
			w.Looked(false)
		}
	})
}
