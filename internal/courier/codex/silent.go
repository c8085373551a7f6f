package codex

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/teamctl/teamctl/team"
)

// A server that is stopped by a signal, or hangs, keeps its connection, and its last report would
// be the state of the agent for good. So it is asked for its thread when nothing was heard of it for
// a while: after it was given a message, while a turn runs, and rarely at rest. If it does not answer
// in time, the state is unknown until it is heard again.

// Times of a patience.
const (
	askWithin = 30 * time.Second
	askAtWork = time.Minute
	askAtRest = 10 * time.Minute
)

// patience is how long an answer may take, and how often a server is asked that says nothing.
type patience struct{ answer, work, rest time.Duration }

// silence is what is known of a server that says nothing.
type silence struct {
	patience
	check     *time.Timer   // ask the server
	heardNow  chan struct{} // capacity 1: ask it at once
	last      atomic.Int64  // when it was heard, in Unix nanoseconds
	mute      atomic.Bool   // reported as one that does not answer
	muteSince int64         // last at that report; only askState uses it
}

func newSilence(p patience) *silence {
	return &silence{patience: p, check: time.NewTimer(p.rest), heardNow: make(chan struct{}, 1)}
}

// hears notes a message of the server.
func (s *silence) hears() {
	s.last.Store(time.Now().UnixNano())
	if s.mute.Load() {
		s.askNow()
	}
}

func (s *silence) askNow() {
	select {
	case s.heardNow <- struct{}{}:
	default:
	}
}

func (s *silence) quietFor() time.Duration { return time.Since(time.Unix(0, s.last.Load())) }

// every is how often a server is asked that says nothing.
func (s *silence) every(now threadStatus) time.Duration {
	if now.Type == "active" {
		return s.work
	}
	return s.rest
}

// askState asks the server for its thread unless it was just heard.
func (a *appServer) askState(ctx context.Context, conn *rpc) {
	a.mu.Lock()
	id, again := a.thread, a.every(a.status)
	a.mu.Unlock()
	if id == "" || !a.mute.Load() && a.quietFor() < a.answer {
		a.check.Reset(again)
		return
	}
	before := a.hearings()
	within, cancel := context.WithTimeout(ctx, a.answer)
	defer cancel()
	var out struct{ Thread thread }
	err := conn.call(within, "thread/read", map[string]string{"threadId": id}, &out)
	quiet := a.quietFor() >= a.answer
	switch no := (*rpcError)(nil); {
	case ctx.Err() != nil || errors.Is(err, errGone):
	case err == nil || errors.As(err, &no):
		if a.mute.Swap(false) && err == nil {
			a.unlessHeard(before, out.Thread.Status)
		}
		a.check.Reset(again)
	case errors.Is(err, errUnsent):
		a.check.Reset(a.answer)
	case quiet:
		last := a.last.Load()
		a.check.Reset(again) // the question may be lost; any message asks at once
		if a.mute.Swap(true) && a.muteSince == last {
			return
		}
		a.muteSince = last // what has been heard since the last report has shown a state
		a.f.Log.Warn("app-server does not answer", "member", a.f.Name, "err", err)
		a.see(team.Observation{Activity: team.ActivityUnknown, Source: "app-server does not answer"})
		if a.last.Load() != last { // heard meanwhile
			a.askNow()
		}
	default: // something was heard, and not the answer
		if a.mute.Load() {
			again = a.answer
		}
		a.check.Reset(again)
	}
}

// see reports an observation with the tier and time of this channel.
func (a *appServer) see(o team.Observation) {
	o.Tier = team.TierChannel
	if o.At.IsZero() {
		o.At = time.Now()
	}
	a.report(o)
}
