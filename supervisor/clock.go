package supervisor

import (
	"encoding/json"
	"os"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// Clock tells the time. Its zero value is the machine's. Wall is for what people
// and the ledger read; anybody may set it. SinceBoot runs evenly through every
// supervisor of one boot.
type Clock struct {
	Wall      func() time.Time
	SinceBoot func() (bootID string, up time.Duration, err error)
}

func (c Clock) withDefaults() Clock {
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

// writePause records the end of a back-off.
func (s *Supervisor) writePause(m *member, wait time.Duration) {
	id, up, err := s.clock.SinceBoot()
	if err == nil {
		var b []byte
		if b, err = json.Marshal(pause{Generation: m.row.Generation, BootID: id, Due: up + wait}); err == nil {
			err = atomicfile.Write(s.cfg.Layout.Bundle(m.row.Name).Backoff(), append(b, '\n'), 0o600, false)
		}
	}
	if err != nil && !os.IsNotExist(err) { // a member that was never started has no bundle
		s.log.Warn("record a back-off", "member", m.row.Name, "err", err)
	}
}

// pauseLeft is what is left of the back-off in the member's row.
func (s *Supervisor) pauseLeft(m *member) time.Duration {
	left := time.UnixMilli(m.row.NextStart).Sub(s.clock.Wall())
	if p, ok := readPause(s.cfg.Layout.Bundle(m.row.Name)); ok && p.Generation == m.row.Generation {
		if id, up, err := s.clock.SinceBoot(); err == nil && id == p.BootID {
			left = p.Due - up
		}
	}
	return min(max(left, time.Millisecond), s.policy.longest(m.row.Failures))
}

func readPause(b team.Bundle) (p pause, ok bool) {
	text, err := regular.ReadFile(b.Backoff())
	return p, err == nil && json.Unmarshal(text, &p) == nil
}
