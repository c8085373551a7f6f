package policy

import (
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Clock returns the time. Its zero value is the machine's. Wall is for people and the ledger and
// may be set by anyone. SinceBoot advances evenly across all supervisors of one boot. Ran has an
// arbitrary start and advances as Go's timers do: it stands still while the machine sleeps.
type Clock struct {
	Wall      func() time.Time
	SinceBoot func() (bootID string, up time.Duration, err error)
	Ran       func() time.Duration
}

// WithDefaults fills unset fields with the machine's clock.
func (c Clock) WithDefaults() Clock {
	if c.Wall == nil {
		c.Wall = time.Now
	}
	if c.SinceBoot == nil {
		c.SinceBoot = sinceBoot
	}
	if c.Ran == nil {
		began := time.Now()
		c.Ran = func() time.Duration { return time.Since(began) }
	}
	return c
}

func sinceBoot() (string, time.Duration, error) {
	id, err := proc.BootID()
	if err != nil {
		return "", 0, err
	}
	up, err := proc.SinceBoot()
	return id, up, err
}

// pause is the content of backoff.json in a member's bundle: when a back-off ends, by the clock
// since boot. The ledger has the same by the wall clock, for people; the next supervisor uses this
// file, so that setting the wall clock neither shortens nor extends the back-off. If the file is
// lost or of another boot, the back-off takes at most the longest pause.
type pause struct {
	Generation string        `json:"generation"`
	BootID     string        `json:"bootId"`
	Due        time.Duration `json:"dueSinceBootNs"`
}

// WritePause records the end of a generation's back-off in its bundle.
func (c Clock) WritePause(b team.Bundle, generation string, wait time.Duration) error {
	id, up, err := c.SinceBoot()
	if err != nil {
		return err
	}
	text, err := json.Marshal(pause{Generation: generation, BootID: id, Due: up + wait})
	if err != nil {
		return err
	}
	err = atomicfile.Write(b.Backoff(), append(text, '\n'), 0o600, false)
	if errors.Is(err, os.ErrNotExist) { // a member that was never started has no bundle
		return nil
	}
	return err
}

// PauseLeft returns the remaining back-off of a member with bundle b.
func (p Policy) PauseLeft(c Clock, b team.Bundle, m ledger.Member) time.Duration {
	left := time.UnixMilli(m.NextStart).Sub(c.Wall())
	if rec, ok := readPause(b); ok && rec.Generation == m.Generation {
		if id, up, err := c.SinceBoot(); err == nil && id == rec.BootID {
			left = rec.Due - up
		}
	}
	return min(max(left, time.Millisecond), p.longest(m.Failures))
}

func readPause(b team.Bundle) (p pause, ok bool) {
	text, err := regular.ReadFile(b.Backoff())
	return p, err == nil && json.Unmarshal(text, &p) == nil
}
