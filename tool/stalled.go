package tool

import (
	"os"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// StalledAfter is how long a teammate that works may show nothing before it is said
// to have stalled (U21).
const StalledAfter = 10 * time.Minute

// Stalled is the last sign of a teammate that is said to work and has given none for
// StalledAfter: it has neither put anything out nor begun anything else. It is zero
// for all others: one that is idle, waits or is paused need not show anything, and of
// one whose activity is unknown nothing is guessed. Nothing is done about it: who
// wants it aborted says so (interrupt, restart, kill).
func Stalled(l team.Layout, m ledger.Member, now time.Time) (since time.Time) {
	if last := lastSign(l, m); !last.IsZero() && now.Sub(last) >= StalledAfter {
		return last
	}
	return since
}

// StallDue is when to look again at who has stalled: nothing else tells of what does not
// happen. It is 0 where none of the members can.
func StallDue(l team.Layout, members []ledger.Member, now time.Time) (due time.Duration) {
	for _, m := range members {
		last := lastSign(l, m)
		if last.IsZero() {
			continue
		}
		in := StalledAfter - now.Sub(last)
		if in <= 0 {
			in = time.Minute // it may show something again, which nobody is told of
		}
		if due == 0 || in < due {
			due = in
		}
	}
	return due
}

// lastSign is when a teammate that works has last shown anything; zero for one that
// need not, or whom nobody sees.
func lastSign(l team.Layout, m ledger.Member) (last time.Time) {
	if m.Observed != team.Running || m.Activity != team.Working || m.Reason == state.PausedReason {
		return last
	}
	fi, err := os.Stat(l.Bundle(m.Name).Log())
	if err != nil {
		return last // a program of somebody's own, whose output nobody sees
	}
	last = time.UnixMilli(max(m.ActivityAt, m.StartedAt))
	if fi.ModTime().After(last) {
		last = fi.ModTime()
	}
	return last
}
