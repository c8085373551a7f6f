package services

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
)

// CopiesKept is the number of copies of a ledger that are kept.
const CopiesKept = 3

// Copies copies the ledger when a run has ended, and at least once in a period while the ledger
// changes. No timer is armed while nothing changes.
type Copies struct {
	loop.Quiet
	team        loop.Team
	every, rest time.Duration

	last    time.Time // time of the newest copy; zero, or after now: unknown, or none
	known   bool      // last was looked up
	running bool
	changed bool // since the newest copy was begun
}

// NewCopies returns the service: each change is in a copy after at most every, and two copies are
// at least rest apart.
func NewCopies(t loop.Team, every, rest time.Duration) *Copies {
	return &Copies{team: t, every: every, rest: rest}
}

// Event makes a copy due at the end of a run.
func (c *Copies) Event(e ledger.Event) {
	if e.What == team.EventRunClosed {
		c.at(c.rest)
	}
}

// Looked arms the timer of the copy that is due after a change.
func (c *Copies) Looked(bool) { c.later() }

func (c *Copies) later() {
	c.changed = true
	if !c.Bus.Armed("copy") {
		c.at(c.every)
	}
}

// at arms the next copy for when the newest one reaches an age. A new team also waits: it has
// nothing yet that would be missed.
func (c *Copies) at(age time.Duration) {
	if !c.known {
		c.known = true
		if list, err := ledger.Copies(c.team.Layout.Copies()); err == nil && len(list) > 0 {
			c.last = list[0].At
		}
	}
	if c.running {
		return // its end calls at again
	}
	since, known := c.age()
	if !known {
		since = c.every - c.rest // after the rest
	}
	c.Bus.After("copy", max(time.Millisecond, age-since), c.copy)
}

// age returns how old the newest copy is. If its name is dated after now, the clock has been set back
// since, and it may be of any age.
func (c *Copies) age() (age time.Duration, known bool) {
	age = time.Since(c.last)
	return age, !c.last.IsZero() && age >= 0
}

func (c *Copies) copy() {
	if c.running || !c.changed {
		return
	}
	c.running, c.changed = true, false
	c.Bus.Go("copy the ledger", func(ctx context.Context) func() {
		if _, err := c.team.Ledger.CopyTo(ctx, c.team.Layout.Copies(), CopiesKept); err != nil && ctx.Err() == nil {
			c.team.Log.Warn("copy the ledger", "err", err)
		}
		return c.copied
	})
}

// copied is called after a copy. After a failure the next change tries again, after the usual
// time.
func (c *Copies) copied() {
	c.running, c.last = false, time.Now()
	if c.changed {
		c.later()
	}
}

// Busy reports whether a copy is being made.
func (c *Copies) Busy() bool { return c.running }

// Last starts the copy that a supervisor makes before it exits; false if none is due.
func (c *Copies) Last() bool {
	if age, known := c.age(); !c.changed || known && age < c.rest {
		return false
	}
	c.Bus.After("copy", 0, nil)
	c.copy()
	return true
}
