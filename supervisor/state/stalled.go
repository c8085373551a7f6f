package state

import (
	"os"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// StalledAfter is how long a working member may show no sign before it counts as stalled.
const StalledAfter = 10 * time.Minute

// Stalled returns the time of the last sign of a working member that has given none for
// StalledAfter: no output and no new activity. A sleep of the machine is no silence: it counts as a
// sign, and so does a clock that was set. Stalled is zero for all others: an idle, waiting or
// paused member need not show anything, and an unknown activity is not guessed. Stalled members
// are only reported: a person interrupts, restarts or kills them.
func Stalled(l team.Layout, m ledger.Member, now time.Time) (since time.Time) {
	if last := lastSign(l, m, now); !last.IsZero() && now.Sub(last) >= StalledAfter {
		return last
	}
	return since
}

// StallDue returns when to check again for stalled members, since no event reports what does not
// happen; 0 if none can stall.
func StallDue(l team.Layout, members []ledger.Member, now time.Time) (due time.Duration) {
	for _, m := range members {
		last := lastSign(l, m, now)
		if last.IsZero() {
			continue
		}
		in := StalledAfter - now.Sub(last)
		if in <= 0 {
			in = time.Minute // it may show a sign again, without an event
		}
		if due == 0 || in < due {
			due = in
		}
	}
	return due
}

// lastSign returns when a working member last showed a sign; zero for one that need not, or that
// is not observed.
func lastSign(l team.Layout, m ledger.Member, now time.Time) (last time.Time) {
	if m.Observed != team.Running || m.Activity != team.Working || m.Reason == team.WhyPaused {
		return last
	}
	fi, err := os.Stat(l.Bundle(m.Name).Log())
	if err != nil {
		return last // a program of the user's own, whose output is not observed
	}
	last = time.UnixMilli(max(m.ActivityAt, m.StartedAt))
	if fi.ModTime().After(last) {
		last = fi.ModTime()
	}
	if age := now.Sub(last); age < 0 || age >= StalledAfter {
		if jump, err := os.Stat(l.ClockJump()); err == nil && (age < 0 || jump.ModTime().After(last)) {
			last = jump.ModTime()
		}
	}
	return last
}
