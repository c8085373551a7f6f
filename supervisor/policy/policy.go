// Package policy has the numbers of supervising: when a member is started again, how long a
// stop takes, and by which clock. Judge decides what follows an exit.
package policy

import (
	"math/rand/v2"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Policy has the numbers of restarting and stopping.
type Policy struct {
	FirstBackoff time.Duration // 1 s, doubled with every failure
	MaxBackoff   time.Duration // 60 s
	Jitter       float64       // 0.5: 0 to 50 % on top; negative: none
	Healthy      time.Duration // 5 min of running forget the failures
	GiveUp       int           // 8 consecutive failures
	StopWait     time.Duration // 10 s for an answer to a shutdown request
	Grace        time.Duration // 10 s from SIGTERM to SIGKILL
	Start        time.Duration // 60 s for a start, worktree included
	Starts       int           // 8 starts at once
	Settle       time.Duration // 300 ms without output after the first: settled
	Silent       time.Duration // 3 s without any output: settled too
	ServicePolicy
}

// ServicePolicy has the numbers of what a supervisor does beside its members.
type ServicePolicy struct {
	Repair     time.Duration // 1 s before the supervisor mails what its poster did not
	Log        int64         // 32 MiB of the ledger's write-ahead log before it is emptied
	LogPause   time.Duration // 1 s from there to the attempt: what reads now has ended then
	LogRest    time.Duration // 1 min after an attempt that a reader was in the way of
	Edits      time.Duration // 1 min at most from a change in a worktree to the look at it
	Offer      time.Duration // 2 s before an idle agent is told of a task that is ready
	OfferAgain time.Duration // 2 min for it to think about that before another one is told
	Evidence   time.Duration // 30 s before a channel is asked about what it has handed over
	Doubt      time.Duration // 10 min before what a channel that cannot be asked has handed over is unknown
	CopyEvery  time.Duration // 1 h: the ledger has no changes that are older and in no copy
	CopyRest   time.Duration // 1 min between two copies, however many runs end
}

// WithDefaults has the defaults for what is zero.
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

// Backoff is the pause before the start that follows the n-th consecutive failure.
func (p Policy) Backoff(n int) time.Duration {
	d := p.pause(n)
	return d + time.Duration(rand.Float64()*p.Jitter*float64(d)) // spreading restarts, not a secret
}

// pause is Backoff without the jitter; longest is the most that it adds up to.
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

// Verdict is what an exit leads to.
type Verdict struct {
	Next     team.Observed // Backoff, Failed or Completed
	Failures int           // consecutive, after this exit
	Wait     time.Duration // of Backoff
	Reason   string
}

// Judge decides what follows the exit of a member that is wanted running. It is
// pure but for the jitter. ran is how long the generation lived; failures counts those before.
func (p Policy) Judge(restart team.RestartPolicy, e backends.Exit, ran time.Duration, failures int) Verdict {
	switch {
	case e.Done():
		return Verdict{Next: team.Completed, Reason: "exit 125: done"}
	case e.ExecFailed:
		return Verdict{Next: team.Failed, Failures: failures + 1, Reason: e.Reason}
	case e.Success() && restart != team.RestartAlways:
		return Verdict{Next: team.Completed, Reason: "exit 0"}
	case restart == team.RestartNever:
		return Verdict{Next: team.Failed, Failures: failures + 1, Reason: "restart policy never"}
	}
	if ran >= p.Healthy {
		failures = 0
	}
	failures++
	if failures >= p.GiveUp {
		return Verdict{Next: team.Failed, Failures: failures, Reason: "crash loop: gave up"}
	}
	return Verdict{Next: team.Backoff, Failures: failures, Wait: p.Backoff(failures)}
}
