package opencode

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/teamctl/teamctl/team"
)

// A server that is stopped by a signal, or hangs, keeps its streams open, and its last report would
// be the state of the agent for good. The stream brings a heartbeat at intervals, so one that brings
// nothing is that of a server without a state, until it is heard again.

// beats watches the heartbeats of a stream. Of a version without them nothing is known.
type beats struct {
	s      *server
	came   chan struct{} // capacity 1: a line came of a stream with heartbeats
	mute   atomic.Bool   // reported as one that brings nothing; the next line asks for the state
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (s *server) watchBeats(ctx context.Context) *beats {
	ctx, cancel := context.WithCancel(ctx)
	b := &beats{s: s, came: make(chan struct{}, 1), cancel: cancel}
	b.done.Go(func() {
		late := time.NewTimer(s.beats)
		late.Stop()
		for {
			select {
			case <-b.came:
				late.Reset(s.beats)
			case <-late.C:
				s.f.Log.Warn("server does not answer", "member", s.f.Name)
				s.see(team.Observation{Activity: team.ActivityUnknown, Source: "server does not answer"})
				b.mute.Store(true) // only now: the state that is asked for follows the report
			case <-ctx.Done():
				late.Stop()
				return
			}
		}
	})
	return b
}

// end ends the watch and waits for that.
func (b *beats) end() {
	b.cancel()
	b.done.Wait()
}

// heard notes a line of the stream. The first after a silence asks for the state.
func (b *beats) heard(ctx context.Context, line []byte) {
	switch {
	case b.s.beating.Load():
	case bytes.Contains(line, []byte(`"server.heartbeat"`)):
		b.s.beating.Store(true)
	default:
		return
	}
	select {
	case b.came <- struct{}{}:
	default:
	}
	// Before it asks: a report meanwhile may follow the answer, so the next line has to ask again.
	if !b.mute.Swap(false) {
		return
	}
	b.s.mu.Lock()
	id := b.s.session
	b.s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := b.s.sync(ctx, id); err != nil {
		b.s.f.Log.Warn("server does not answer", "member", b.s.f.Name, "err", err)
		b.mute.Store(true) // the next line tries again
	}
}
