package state

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// After the clock was set, what is seen next counts against what was seen before as if it had not
// been set.
func TestShift(t *testing.T) {
	t.Parallel()
	const s = time.Second
	answered := func(e *Engine) { e.Answered(t0.Add(s)) }
	dialog := seen(team.TierScreen, 0, team.Waiting)
	for _, c := range []struct {
		name   string
		before []team.Observation
		and    func(*Engine)
		after  team.Observation
		want   team.Activity
	}{
		{"the next hook", []team.Observation{seen(team.TierHook, 0, team.Working)}, nil, seen(team.TierHook, 3*s, team.Idle), team.Idle},
		{"a hook from before the last one", []team.Observation{seen(team.TierHook, 2*s, team.Idle)}, nil, seen(team.TierHook, s, team.Working), team.Idle},
		{"a screen that may lag", []team.Observation{seen(team.TierHook, 2*s, team.Working)}, nil, seen(team.TierScreen, 3*s, team.Idle), team.Working},
		{"a screen that does not", []team.Observation{seen(team.TierHook, 0, team.Working)}, nil, seen(team.TierScreen, 3*s, team.Idle), team.Idle},
		{"a dialog whose answer was given", []team.Observation{seen(team.TierHook, 0, team.Working), dialog}, answered, seen(team.TierTitle, 2*s, ""), team.Working},
		{"one that opens after an answer", []team.Observation{seen(team.TierHook, 0, team.Working)}, answered, seen(team.TierChannel, 2*s, team.Waiting), team.Waiting},
	} {
		for _, by := range []time.Duration{0, -time.Hour, time.Hour} {
			var e Engine
			for _, o := range c.before {
				e.Take(o)
			}
			if c.and != nil {
				c.and(&e)
			}
			e.Shift(by, t0.Add(2*s+by))
			c.after.At = c.after.At.Add(by)
			e.Take(c.after)
			if v := e.Verdict(t0.Add(3*s + by)); v.Activity != c.want {
				t.Errorf("%s, set by %s: %s by %s, want %s", c.name, by, v.Activity, v.Tier, c.want)
			}
			c.after.At = c.after.At.Add(-by)
		}
	}
}

// A limit that was ended stays ended, and one in force keeps its times, whatever the clock is set to.
func TestShiftKeepsLimits(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		var e Engine
		o := seen(team.TierHook, 0, team.Limited)
		o.Until = t0.Add(5 * time.Hour)
		e.Take(o)
		now := t0.Add(time.Minute + by)
		e.Shift(by, now)
		if v := e.Verdict(now); v.Activity != team.Limited || !v.Since.Equal(t0) || !v.Until.Equal(o.Until) {
			t.Errorf("set by %s: %s since %s until %s", by, v.Activity, v.Since, v.Until)
		}
		e.Ended = t0.Add(time.Second)
		if v := e.Verdict(now); v.Activity == team.Limited {
			t.Errorf("set by %s: it was ended and counts", by)
		}
	}
}

// No time that was kept is later than now, so that nothing has to wait for the clock.
func TestShiftedIsPast(t *testing.T) {
	t.Parallel()
	if got := Shifted(t0, time.Hour, t0.Add(time.Minute)); !got.Equal(t0.Add(time.Minute)) {
		t.Errorf("shifted to %s", got)
	}
	if got := Shifted(time.Time{}, -time.Hour, t0); !got.IsZero() {
		t.Errorf("none was shifted to %s", got)
	}
}
