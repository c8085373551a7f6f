// Package policy has the parameters of supervision: when a member is restarted, how long a stop
// takes, and by which clock. Judge decides what follows an exit.
package policy

import (
	"math/rand/v2"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Policy has the parameters of restarting and stopping.
type Policy struct {
	FirstBackoff time.Duration // 1 s, doubled with every failure
	MaxBackoff   time.Duration // 60 s
	Jitter       float64       // 0.5: 0 to 50 % on top; negative: none
	Healthy      time.Duration // 5 min of running reset the failures
	GiveUp       int           // 8 consecutive failures
	StopWait     time.Duration // 10 s for an answer to a shutdown request
	Grace        time.Duration // 10 s from SIGTERM to SIGKILL
	Start        time.Duration // 60 s for a start, worktree included
	Starts       int           // 8 starts at once
	Settle       time.Duration // 300 ms without output after the first: settled
	Silent       time.Duration // 3 s without any output: settled as well
	ServicePolicy
}

// ServicePolicy has the parameters of the services.
type ServicePolicy struct {
	Repair     time.Duration // 1 s before the supervisor mails what its poster has not mailed
	Log        int64         // 32 MiB of the ledger's write-ahead log before it is emptied
	LogPause   time.Duration // 1 s from there to the attempt, in which present readers end
	LogRest    time.Duration // 1 min after an attempt that a reader blocked
	Edits      time.Duration // 1 min: maximum time from a change in a worktree to the look at it
	Offer      time.Duration // 2 s before an idle agent is offered a ready task
	OfferAgain time.Duration // 2 min for it to respond before another agent is offered one
	Evidence   time.Duration // 30 s before a channel is asked about mail that it has delivered
	Doubt      time.Duration // 10 min before mail delivered by a channel that cannot be asked becomes unknown
	CopyEvery  time.Duration // 1 h: maximum age of changes in the ledger that are in no copy
	CopyRest   time.Duration // 1 min: minimum time between two copies
}

// WithDefaults fills zero fields with the defaults.
func (p Policy) WithDefaults() Policy {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&p.FirstBackoff, time.Second)
	def(&p.MaxBackoff, time.Minute)
	def(&p.Healthy, 5*time.Minute)
	def(&p.StopWait, 10*time.Second)
	def(&p.Grace, 10*time.Second)
	def(&p.Start, time.Minute)
	def(&p.Repair, time.Second)
	def(&p.LogPause, time.Second)
	def(&p.LogRest, time.Minute)
	def(&p.Edits, time.Minute)
	def(&p.Offer, 2*time.Second)
	def(&p.OfferAgain, 2*time.Minute)
	def(&p.Evidence, 30*time.Second)
	def(&p.Doubt, 10*time.Minute)
	def(&p.CopyEvery, time.Hour)
	def(&p.CopyRest, time.Minute)
	def(&p.Settle, 300*time.Millisecond)
	def(&p.Silent, 3*time.Second)
	switch {
	case p.Jitter == 0:
		p.Jitter = 0.5
	case p.Jitter < 0:
		p.Jitter = 0
	}
	if p.GiveUp == 0 {
		p.GiveUp = 8
	}
	if p.Log == 0 {
		p.Log = ledger.WALMuch
	}
	if p.Starts == 0 {
		p.Starts = 8
	}
	return p
}

// Backoff returns the pause before the start that follows the n-th consecutive failure.
func (p Policy) Backoff(n int) time.Duration {
	d := p.pause(n)
	return d + time.Duration(rand.Float64()*p.Jitter*float64(d)) // spreads restarts; not a secret
}

// pause is Backoff without the jitter; longest is its maximum with the jitter.
func (p Policy) pause(n int) time.Duration {
	d := p.FirstBackoff
	for i := 1; i < n && d < p.MaxBackoff; i++ {
		d *= 2
	}
	return min(d, p.MaxBackoff)
}

func (p Policy) longest(n int) time.Duration {
	return time.Duration(float64(p.pause(n)) * (1 + p.Jitter))
}

// Verdict is the consequence of an exit.
type Verdict struct {
	Next     team.Observed // Backoff, Failed or Completed
	Failures int           // consecutive, including this exit
	Wait     time.Duration // pause of Backoff
	Reason   string
}

// Judge decides what follows the exit of a member whose desired state is running. It is pure
// except for the jitter. ran is how long the generation lived; failures counts the earlier
// consecutive failures.
func (p Policy) Judge(restart team.RestartPolicy, e backends.Exit, ran time.Duration, failures int) Verdict {
	switch {
	case e.Done():
		return Verdict{Next: team.Completed, Reason: team.WhyDone}
	case e.ExecFailed:
		return Verdict{Next: team.Failed, Failures: failures + 1, Reason: e.Reason}
	case e.Success() && !e.Imposed() && restart != team.RestartAlways:
		return Verdict{Next: team.Completed, Reason: team.WhyExitZero}
	case restart == team.RestartNever:
		return Verdict{Next: team.Failed, Failures: failures + 1, Reason: team.WhyNoRestart}
	}
	if ran >= p.Healthy {
		failures = 0
	}
	failures++
	if failures >= p.GiveUp {
		return Verdict{Next: team.Failed, Failures: failures, Reason: team.WhyCrashLoop}
	}
	return Verdict{Next: team.Backoff, Failures: failures, Wait: p.Backoff(failures)}
}
