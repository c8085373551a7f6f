package supervisor

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/ledger"
)

// Copies of the ledger are made when a run has ended, and at least once in CopyEvery
// while it changes. Nothing is armed while nothing changes.

// CopiesKept is how many copies of a ledger there are.
const CopiesKept = 3

// copying is what is known of the copies.
type copying struct {
	last    time.Time // the newest; zero: not looked at yet, or none
	looked  bool
	running bool
	changed bool // since the newest was begun
}

// copyOn takes an event; the end of a run is a good moment for a copy.
func (s *Supervisor) copyOn(e ledger.Event) {
	if e.What == "run.closed" {
		s.copyAt(s.policy.CopyRest)
	}
}

// copyLater arms the copy that is due after a change.
func (s *Supervisor) copyLater() {
	s.copies.changed = true
	if s.timers["copy"] == nil {
		s.copyAt(s.policy.CopyEvery)
	}
}

// copyAt arms the next copy for when the newest is so old. A new team waits, too: it has
// nothing yet that would be missed.
func (s *Supervisor) copyAt(age time.Duration) {
	c := &s.copies
	if !c.looked {
		c.looked = true
		if list, err := ledger.Copies(s.cfg.Layout.Copies()); err == nil && len(list) > 0 {
			c.last = list[0].At
		}
	}
	if c.running {
		return // its end looks again
	}
	since := s.policy.CopyEvery - s.policy.CopyRest // without a copy: after the rest
	if !c.last.IsZero() {
		since = max(0, time.Since(c.last))
	}
	s.after("copy", max(time.Millisecond, age-since), copyNow{})
}

// copyNow makes a copy.
type copyNow struct{}

func (copyNow) apply(s *Supervisor) {
	delete(s.timers, "copy")
	if s.copies.running || !s.copies.changed {
		return
	}
	s.copies.running, s.copies.changed = true, false
	s.step(func(ctx context.Context) message {
		if _, err := s.cfg.Ledger.CopyTo(ctx, s.cfg.Layout.Copies(), CopiesKept); err != nil && ctx.Err() == nil {
			s.log.Warn("copy the ledger", "err", err)
		}
		return copied{}
	})
}

// copied is the end of it. After a failure the next change tries again, not before the
// usual time has passed.
type copied struct{}

func (copied) apply(s *Supervisor) {
	s.copies.running, s.copies.last = false, time.Now()
	if s.copies.changed {
		s.copyLater()
	}
}

// copyLast begins the copy that a supervisor makes before it leaves; false: none is due.
func (s *Supervisor) copyLast() bool {
	if !s.copies.changed || !s.copies.last.IsZero() && time.Since(s.copies.last) < s.policy.CopyRest {
		return false
	}
	s.after("copy", 0, nil)
	copyNow{}.apply(s)
	return true
}
