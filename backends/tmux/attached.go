package tmux

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/proc"
	"github.com/teamctl/teamctl/backends/shim"
	"github.com/teamctl/teamctl/team"
)

// attached is a generation in a pane, started or adopted.
type attached struct {
	b      *Backend
	launch backends.Launch
	proc   backends.Proc
	pane   backends.Pane
	server *server // nil when the server died under it

	watch  *proc.Watcher
	quit   chan struct{} // closed by Detach
	once   sync.Once
	ended  chan struct{} // the watching goroutine is over
	exited chan struct{}
	exit   backends.Exit // set before exited is closed
}

var _ backends.Handle = (*attached)(nil)

// attach starts watching the shim.
func (b *Backend) attach(l backends.Launch, pr backends.Proc, p backends.Pane, s *server) (*attached, error) {
	w, err := proc.Watch(pr.Shim)
	if err != nil {
		return nil, err
	}
	a := &attached{
		b: b, launch: l, proc: pr, pane: p, server: s, watch: w,
		quit: make(chan struct{}), ended: make(chan struct{}), exited: make(chan struct{}),
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		w.Close()
		return nil, team.Errorf(team.CodeUnavailable, "the tmux backend is closed")
	}
	b.live[a] = struct{}{}
	b.mu.Unlock()
	go a.follow()
	return a, nil
}

func (a *attached) follow() {
	defer close(a.ended)
	defer a.watch.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var logged sync.WaitGroup
	if a.server != nil {
		logged.Go(func() { a.keepLogged(ctx) })
	}
	detached := false
	select {
	case <-a.watch.Done():
	case <-a.quit:
		detached = true
	}
	cancel()
	logged.Wait()
	if detached {
		return
	}
	a.exit = a.b.conclude(a.launch, a.proc, a.pane, a.server)
	close(a.exited)
	a.nudge()
}

func (a *attached) Launch() backends.Launch { return a.launch }
func (a *attached) Proc() backends.Proc     { return a.proc }
func (a *attached) Exited() <-chan struct{} { return a.exited }
func (a *attached) Exit() backends.Exit     { return a.exit }

func (a *attached) Pane() backends.Pane {
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	return a.pane
}

// Detach ends the watching; it waits for an exit that is just being concluded.
func (a *attached) Detach() {
	a.once.Do(func() { close(a.quit) })
	<-a.ended
	a.b.mu.Lock()
	delete(a.b.live, a)
	a.b.mu.Unlock()
}

// concludeWithin bounds what is asked of tmux when a generation has ended.
const concludeWithin = 5 * time.Second

// conclude finds out how a generation ended whose shim is dead. Without a record
// the exit stays unknown: what survived the shim is ended, and that is recorded.
func (b *Backend) conclude(l backends.Launch, pr backends.Proc, p backends.Pane, s *server) backends.Exit {
	ctx, cancel := context.WithTimeout(context.Background(), concludeWithin)
	defer cancel()
	e, err := shim.ReadExit(l.Bundle, l.Generation)
	if err == nil && e.Reason != backends.ReasonTerminalGone {
		b.drain(l)
		e.Tail = shim.Tail(l.Bundle.Log())
		return e
	}
	killed := err != nil
	if err != nil {
		n, kerr := shim.EndRest(ctx, l.Bundle, l.Generation, []backends.ProcID{pr.Agent}, time.Second)
		e = backends.Exit{Generation: l.Generation, Code: -1, At: time.Now(), Leftover: n, Reason: backends.ReasonShimKilled}
		if kerr != nil {
			b.log.Error("end what survived the shim", "agent", l.Agent, "err", kerr)
			e.Reason += "; " + kerr.Error()
		}
		if !team.IsCode(err, team.CodeNotFound) {
			e.Reason += "; " + err.Error()
		}
	}
	if why := placeLost(ctx, p, s); why != "" {
		e.Reason = why
	}
	if err := shim.WriteExit(l.Bundle, e); err != nil {
		b.log.Error("record an exit", "agent", l.Agent, "err", err)
	}
	if killed && s != nil {
		// Nobody has marked the end of the output: close the pipe to the log. Being asked
		// about the pane just before, tmux has read what was there. It refuses where the
		// pane is gone, and the pipe with it.
		_, _ = s.run(ctx, "pipe-pane", "-t", p.PaneID)
	}
	b.drain(l)
	e.Tail = shim.Tail(l.Bundle.Log())
	return e
}

// drainWithin bounds the wait for the last output to be in the log.
const drainWithin = time.Second

// drain waits for the log of a generation that has ended.
func (b *Backend) drain(l backends.Launch) {
	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	shim.AwaitLog(ctx, l.Bundle, l.Generation)
	if ctx.Err() != nil {
		b.log.Warn("the end of the output may be missing in the log", "agent", l.Agent)
	}
}

// placeLost says what became of the pane; it is empty when the pane is there or
// when that cannot be found out.
func placeLost(ctx context.Context, p backends.Pane, s *server) string {
	if s == nil {
		return backends.ReasonServerGone
	}
	_, ok, err := s.find(ctx, p.PaneID)
	if err == nil && ok {
		return ""
	}
	// A server that goes down closes its panes first.
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
	}
	if err != nil {
		return ""
	}
	return backends.ReasonPaneKilled
}

const (
	// How often tmux is reminded: soon, and then seldom for a log that takes its time.
	nudgeSoon, nudgeSeldom = 25 * time.Millisecond, 250 * time.Millisecond
	nudgesSoon, nudges     = 20, 40
)

// nudge makes a tmux before 3.6 reap a pane's process, or the one that wrote its log,
// whose death it has missed.
func (a *attached) nudge() {
	if a.server == nil {
		return
	}
	logger, err := shim.LoggerOf(a.launch.Bundle, a.launch.Generation)
	logs := err == nil
	t := time.NewTicker(nudgeSoon)
	defer t.Stop()
	for i := range nudges {
		select {
		case <-t.C:
		case <-a.quit:
			return
		}
		zombie := proc.Zombie(a.proc.Shim) || logs && proc.Zombie(logger)
		if !zombie && (!logs || !proc.Alive(logger)) {
			return
		}
		if zombie {
			_ = proc.Signal(a.server.id, syscall.SIGCHLD)
		}
		if i == nudgesSoon {
			t.Reset(nudgeSeldom)
		}
	}
}

// Interrupt sends SIGINT as Ctrl-C would: to the terminal's foreground group.
func (a *attached) Interrupt(context.Context) error {
	pgrp, err := proc.Foreground(a.proc.Agent)
	if errors.Is(err, proc.ErrGone) {
		return team.Errorf(team.CodeNotFound, "interrupt %s: it has exited", a.launch.Agent)
	}
	if err != nil {
		return fmt.Errorf("interrupt %s: %w", a.launch.Agent, err)
	}
	// The group that holds the shim would be the wrong one: the agent is then not
	// in the foreground yet.
	if pgrp > 1 && pgrp != a.proc.Shim.PID {
		err = syscall.Kill(-pgrp, syscall.SIGINT)
	} else {
		err = proc.Signal(a.proc.Agent, syscall.SIGINT)
	}
	if err != nil {
		return fmt.Errorf("interrupt %s: %w", a.launch.Agent, err)
	}
	return nil
}

// Stop ends the tree. Once begun it runs to its end, whatever ctx does: it is
// bounded by grace and about fifteen seconds; a cancelled ctx ends the grace.
func (a *attached) Stop(ctx context.Context, grace time.Duration) error {
	select {
	case <-a.exited:
		return nil
	default:
	}
	_ = proc.Signal(a.proc.Shim, syscall.SIGCONT) // it has to reap
	_, err := proc.KillTreeIn(ctx, shim.GroupOf(a.launch.Bundle, a.launch.Generation), []backends.ProcID{a.proc.Agent}, a.launch.Generation, grace)
	if err != nil {
		return fmt.Errorf("stop %s: %w", a.launch.Agent, err)
	}
	if a.wait(5 * time.Second) {
		return nil
	}
	// A shim that does not notice its agent's end (it is stopped, or hangs on the
	// disk) must not keep the member from being started again.
	_ = proc.Signal(a.proc.Shim, syscall.SIGKILL)
	if a.wait(10 * time.Second) {
		return nil
	}
	return team.Errorf(team.CodeTimeout, "stop %s: its exit was not recorded", a.launch.Agent)
}

func (a *attached) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-a.exited:
		return true
	case <-a.ended: // detached meanwhile, or exited
		select {
		case <-a.exited:
			return true
		default:
			return !proc.Alive(a.proc.Shim)
		}
	case <-t.C:
		return false
	}
}
