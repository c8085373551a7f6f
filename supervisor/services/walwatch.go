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

// WALWatch keeps the write-ahead log of the ledger small. SQLite restarts the log once all of it
// is in the database and nothing reads it. A reader that keeps its transaction open (a person's
// sqlite3, a hanging program) makes it grow without bound. Nothing waits for such a reader; the
// log is emptied once the reader has ended, and its size is logged until then.
type WALWatch struct {
	loop.Quiet
	team        loop.Team
	much        int64 // bytes
	pause, rest time.Duration
	cutting     bool
}

// NewWALWatch returns the service: a log of more than much bytes is emptied after pause, in which
// present readers end. After an attempt blocked by a reader, the next one comes after rest, since
// each delays writers for a moment.
func NewWALWatch(t loop.Team, much int64, pause, rest time.Duration) *WALWatch {
	return &WALWatch{team: t, much: much, pause: pause, rest: rest}
}

// Looked checks the size of the log after changes.
func (w *WALWatch) Looked(bool) {
	if w.cutting || w.Bus.Armed("log") {
		return
	}
	if size, err := w.team.Ledger.WALSize(); err == nil && size > w.much {
		w.Bus.After("log", w.pause, w.cut)
	}
}

// cut empties the log if possible.
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
