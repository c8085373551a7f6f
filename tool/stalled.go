package tool

import (
	"os"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
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
	if m.Observed != team.Running || m.Activity != team.Working || m.Reason == supervisor.PausedReason {
		return since
	}
	last := time.UnixMilli(max(m.ActivityAt, m.StartedAt))
	fi, err := os.Stat(l.Bundle(m.Name).Log())
	if err != nil {
		return since // a program of somebody's own, whose output nobody sees
	}
	if fi.ModTime().After(last) {
		last = fi.ModTime()
	}
	if now.Sub(last) < StalledAfter {
		return since
	}
	return last
}
