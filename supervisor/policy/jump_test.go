package policy

import (
	"errors"
	"testing"
	"time"
)

// A sleep and a clock that was set are told apart, small steps add up, and a jump is reported once.
func TestJumped(t *testing.T) {
	t.Parallel()
	wall, ran, up, noBoot := time.Date(2026, 11, 21, 23, 10, 0, 0, time.UTC), time.Minute, time.Hour, error(nil)
	c := Clock{
		Wall:      func() time.Time { return wall },
		Ran:       func() time.Duration { return ran },
		SinceBoot: func() (string, time.Duration, error) { return "b", up, noBoot },
	}
	at := c.Now()
	pass := func(d, slept, set time.Duration) {
		wall, ran, up = wall.Add(d+slept+set), ran+d, up+d+slept
	}
	for _, x := range []struct {
		what          string
		d, slept, set time.Duration
		blind         bool
		jumped        bool
		want          time.Duration
	}{
		{"nothing", time.Hour, 0, 0, false, false, 0},
		{"a small step", time.Hour, 0, -600 * time.Millisecond, false, false, 0},
		{"another one", time.Hour, 0, -600 * time.Millisecond, false, true, -1200 * time.Millisecond},
		{"once", time.Hour, 0, 0, false, false, 0},
		{"a sleep", time.Minute, 10 * time.Hour, 0, false, true, 0},
		{"set forward", time.Minute, 0, 2 * time.Hour, false, true, 2 * time.Hour},
		{"set back", time.Minute, 0, -2 * time.Hour, false, true, -2 * time.Hour},
		{"set back after a sleep", time.Minute, time.Hour, -2 * time.Hour, false, true, -2 * time.Hour},
		{"set back without the time since boot", time.Minute, 0, -2 * time.Hour, true, true, -2 * time.Hour},
		{"a sleep after that", time.Minute, time.Hour, 0, false, true, time.Hour},
		{"and the next", time.Minute, time.Hour, 0, false, true, 0},
	} {
		pass(x.d, x.slept, x.set)
		if noBoot = nil; x.blind {
			noBoot = errors.New("no such clock")
		}
		jumped, set, next := c.Jumped(at)
		if at = next; jumped != x.jumped || set != x.want {
			t.Errorf("%s: jumped %v, set by %s; want %v, %s", x.what, jumped, set, x.jumped, x.want)
		}
	}
}
