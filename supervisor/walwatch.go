package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// SQLite starts its write-ahead log again once everything in it is in the database and
// nobody reads it, which keeps it at a few megabytes. A reader that leaves its
// transaction open (a person's sqlite3, a program that hangs) makes it grow without
// end. Nothing waits for such a reader; the log is cut once he has gone, and until
// then it is said.

// cutWait bounds the wait for a turn at the ledger.
const cutWait = time.Second

// watchLog looks at the size of the ledger's log after its changes.
func (s *Supervisor) watchLog() {
	if s.timers["log"] != nil {
		return
	}
	if size, err := s.cfg.Ledger.WALSize(); err == nil && size > s.policy.Log {
		s.after("log", s.policy.LogPause, cutLog{})
	}
}

// cutLog empties the log of the ledger if it can be done now.
type cutLog struct{}

func (cutLog) apply(s *Supervisor) {
	s.step(func(ctx context.Context) message {
		soon, cancel := context.WithTimeout(ctx, cutWait)
		defer cancel()
		err := s.cfg.Ledger.Checkpoint(soon)
		size, serr := s.cfg.Ledger.WALSize()
		switch {
		case ctx.Err() != nil:
		case team.ReasonOf(err) == ledger.ReasonBusy:
			s.log.Warn("the ledger's log grows: a program reads the ledger and does not end", "bytes", size)
		case err != nil || serr != nil:
			s.log.Warn("empty the ledger's log", "err", errors.Join(err, serr))
		}
		return logCut{busy: err != nil}
	})
}

// logCut is the end of cutLog. After a failure the next look waits: each holds up
// writers for a moment.
type logCut struct{ busy bool }

func (c logCut) apply(s *Supervisor) {
	delete(s.timers, "log")
	if c.busy {
		s.after("log", s.policy.LogRest, logCut{})
		return
	}
	s.watchLog()
}
