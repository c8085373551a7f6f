package tmux

import (
	"context"
	"sync"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/holder"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// attached is a generation in a pane, started or adopted.
type attached struct {
	*holder.Life
	b      *Backend
	pane   team.Pane
	server *server // nil if the server died while the generation was running

	quit chan struct{} // closed by Detach
	once sync.Once
	work sync.WaitGroup // work for the pane while the generation is alive, and afterwards
}

var (
	_ backends.Handle  = (*attached)(nil)
	_ backends.Freezer = (*attached)(nil)
	_ backends.Viewer  = (*attached)(nil)
)

// attach starts watching the shim.
func (b *Backend) attach(l backends.Launch, pr backends.Proc, p team.Pane, s *server) (*attached, error) {
	a := &attached{b: b, pane: p, server: s, quit: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	var logged sync.WaitGroup
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		cancel()
		return nil, team.Errorf(team.CodeUnavailable, "the tmux backend is closed")
	}
	followed := make(chan struct{})
	life, err := holder.Follow(&b.looks, l, pr, func() backends.Exit {
		<-followed
		cancel()
		logged.Wait()
		return b.conclude(l, pr, p, s)
	})
	if err != nil {
		cancel()
		return nil, err
	}
	a.Life = life
	if s != nil {
		logged.Go(func() { a.keepLogged(ctx) })
	}
	close(followed)
	a.work.Go(func() {
		defer logged.Wait()
		defer cancel()
		select {
		case <-a.Exited():
			s.nudge(l, pr.Shim, a.quit)
		case <-a.quit:
		}
	})
	b.live[a] = struct{}{}
	return a, nil
}

// Pane returns its location.
func (a *attached) Pane() team.Pane {
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	return a.pane
}

// Detach ends the watching; it waits for an exit that is being concluded.
func (a *attached) Detach() {
	a.once.Do(func() { close(a.quit) })
	a.Life.Detach()
	a.work.Wait()
	a.b.mu.Lock()
	delete(a.b.live, a)
	a.b.mu.Unlock()
}

// conclude determines how a generation ended whose shim is dead. Without a
// record the exit is unknown: conclude ends what survived the shim, and records
// that.
func (b *Backend) conclude(l backends.Launch, pr backends.Proc, p team.Pane, s *server) backends.Exit {
	e, err := holder.ReadExit(l, b.log)
	ctx, cancel := context.WithTimeout(context.Background(), holder.ConcludeWithin)
	defer cancel()
	if err == nil && e.Reason != backends.ReasonTerminalGone {
		b.drain(l, holder.AwaitLog)
		e.Tail = bundle.Tail(l.Bundle.Log())
		return e
	}
	killed := err != nil
	if killed {
		e = holder.Unknown(ctx, &b.looks, l, pr, err, b.log)
	}
	if why := placeLost(ctx, p, s); why != "" {
		e.Reason = why
	}
	write := bundle.WriteExit
	if killed {
		write = func(at team.Bundle, e backends.Exit) error { return bundle.WriteLostExit(at, e, err) }
	}
	if err := write(l.Bundle, e); err != nil {
		b.log.Error("record an exit", "agent", l.Agent, "err", err)
	}
	wait := holder.AwaitLog
	if killed {
		// The end of the output is not marked, and tmux keeps the pipe of a dead pane open.
		// It has just answered a query about the pane, so it has read the pending output.
		wait = holder.FinishLog
	}
	b.drain(l, wait)
	e.Tail = bundle.Tail(l.Bundle.Log())
	return e
}

// drainWithin limits the wait for the last output to reach the log.
const drainWithin = 10 * time.Second

// drain waits for the log of a generation that has ended, by AwaitLog or FinishLog.
func (b *Backend) drain(l backends.Launch, wait func(context.Context, team.Bundle, string) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	wait(ctx, l.Bundle, l.Generation)
	if ctx.Err() != nil {
		b.log.Warn("the end of the output may be missing from the log", "agent", l.Agent)
	}
}

// placeLost returns what happened to the pane; it is empty if the pane exists
// or that cannot be determined.
func placeLost(ctx context.Context, p team.Pane, s *server) string {
	if s == nil {
		return backends.ReasonServerGone
	}
	_, ok, err := s.find(ctx, p.PaneID)
	if err == nil && ok {
		return ""
	}
	// A server that shuts down closes its panes first.
	w, werr := proc.Watch(s.id)
	if werr != nil {
		return ""
	}
	defer w.Close()
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	select {
	case <-w.Done():
		return backends.ReasonServerGone
	case <-t.C:
		if !proc.Alive(s.id) { // this process may have seen neither before
			return backends.ReasonServerGone
		}
	}
	if err != nil {
		return ""
	}
	return backends.ReasonPaneKilled
}

const (
	// Intervals at which tmux is reminded: short at first, then long for a log
	// that takes its time.
	nudgeSoon, nudgeSeldom = 25 * time.Millisecond, 250 * time.Millisecond
	nudgesSoon, nudges     = 20, 40
)

// nudge makes a tmux before 3.6 reap a pane's process or log writer whose death
// it has missed.
func (s *server) nudge(l backends.Launch, shimID backends.ProcID, quit <-chan struct{}) {
	if s == nil {
		return
	}
	logger, err := bundle.ReadLogger(l.Bundle, l.Generation)
	logs := err == nil
	t := time.NewTicker(nudgeSoon)
	defer t.Stop()
	for i := range nudges {
		select {
		case <-t.C:
		case <-quit:
			return
		}
		zombie := proc.Zombie(shimID) || logs && proc.Zombie(logger.Process)
		if !zombie && (!logs || !proc.Alive(logger.Process)) {
			return
		}
		if zombie {
			_ = proc.Signal(s.id, syscall.SIGCHLD)
		}
		if i == nudgesSoon {
			t.Reset(nudgeSeldom)
		}
	}
}
