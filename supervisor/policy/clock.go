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

// Clock tells the time. Its zero value is the machine's. Wall is for what people
// and the ledger read; anybody may set it. SinceBoot runs evenly through every
// supervisor of one boot.
type Clock struct {
	Wall      func() time.Time
	SinceBoot func() (bootID string, up time.Duration, err error)
}

// WithDefaults is the machine's clock where nothing else is set.
func (c Clock) WithDefaults() Clock {
	if c.Wall == nil {
		c.Wall = time.Now
	}
	if c.SinceBoot == nil {
		c.SinceBoot = sinceBoot
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

// pause is backoff.json in a member's bundle: when a back-off ends by the clock
// that nobody sets. The ledger has the same by the wall clock, for people; a next
// supervisor goes by this file, which a moved wall clock neither cuts short nor
// stretches. Lost, or of another boot, it costs no more than one longest pause.
type pause struct {
	Generation string        `json:"generation"`
	BootID     string        `json:"bootId"`
	Due        time.Duration `json:"dueSinceBootNs"`
}

// WritePause records the end of a back-off of a generation in its bundle.
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

// PauseLeft is what is left of the back-off in a member's row, whose bundle is b.
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
