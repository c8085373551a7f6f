package holder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// The supervisor's side of a shim: what every backend does with a generation
// held by a shim, wherever its terminal is.

// ErrNoShim means that the shim ended before it recorded anything.
var ErrNoShim = errors.New("the shim ended before it started the agent")

// adoptWithin limits the wait for a shim that is just starting its agent.
const adoptWithin = 5 * time.Second

// WaitUp waits for proc.json. Events only trigger a check; dead is closed when
// the shim ends; look is the interval of checks without an event.
func WaitUp(ctx context.Context, l backends.Launch, events <-chan bundle.Event, dead <-chan struct{}, look time.Duration) (backends.Proc, error) {
	t := time.NewTicker(look)
	defer t.Stop()
	for over := false; ; {
		pr, err := bundle.ReadProc(l.Bundle, l.Generation)
		if err == nil {
			return pr, nil
		}
		if !team.IsCode(err, team.CodeNotFound) {
			return pr, err
		}
		if over {
			return pr, ErrNoShim
		}
		select {
		case _, ok := <-events:
			if !ok {
				events = nil // the notifier was closed
			}
		case <-dead:
			over = true
		case <-t.C:
		case <-ctx.Done():
			return pr, fmt.Errorf("wait for the shim: %w", context.Cause(ctx))
		}
	}
}

// AwaitProc reads proc.json for an adoption, waiting for it while a living shim
// has not written it yet. A launch of which nothing is alive is CodeNotFound,
// and then nothing of it is left.
func AwaitProc(ctx context.Context, l backends.Launch) (backends.Proc, error) {
	deadline := time.NewTimer(adoptWithin)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for over := false; ; {
		pr, err := bundle.ReadProc(l.Bundle, l.Generation)
		if !team.IsCode(err, team.CodeNotFound) {
			return pr, err
		}
		if over {
			if _, kerr := EndRest(ctx, nil, l.Bundle, l.Generation, nil, time.Second); kerr != nil {
				return pr, kerr
			}
			return pr, err
		}
		if runs, rerr := bundle.Running(l.Bundle); rerr == nil && !runs {
			over = true // it may have written the file and exited meanwhile: read once more
			continue
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return pr, team.Errorf(team.CodeTimeout, "a shim is running and has not recorded its agent")
		case <-ctx.Done():
			return pr, context.Cause(ctx)
		}
	}
}

// Conclude determines how a generation ended whose shim is dead. Without a
// record the exit is unknown: Conclude ends what survived the shim, and records
// that, but never over a record that it could not read.
func Conclude(looks *proc.Looks, l backends.Launch, pr backends.Proc, log *slog.Logger) backends.Exit {
	e, err := ReadExit(l, log)
	if err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), ConcludeWithin)
		defer cancel()
		e = Unknown(ctx, looks, l, pr, err, log)
		if err := bundle.WriteLostExit(l.Bundle, e, err); err != nil {
			log.Error("record an exit", "agent", l.Agent, "err", err)
		}
	}
	if e.Tail == "" {
		e.Tail = bundle.Tail(l.Bundle.Log())
	}
	return e
}

// ConcludeWithin limits the time for reading how a generation ended, and for
// determining it without a record.
const ConcludeWithin = 5 * time.Second

// exitEvery is the interval at which a record is read again.
const exitEvery = 20 * time.Millisecond

// ReadExit reads the record of a generation whose shim is dead. It tries again,
// within ConcludeWithin, if that fails for a reason that may pass: too many open
// files, or a fault of the disk.
func ReadExit(l backends.Launch, log *slog.Logger) (backends.Exit, error) {
	ctx, cancel := context.WithTimeout(context.Background(), ConcludeWithin)
	defer cancel()
	tick := time.NewTicker(exitEvery)
	defer tick.Stop()
	for again := false; ; again = true {
		e, err := bundle.ReadExit(l.Bundle, l.Generation)
		if err == nil || bundle.NoExit(err) {
			return e, err
		}
		if !again {
			log.Warn("read an exit again", "agent", l.Agent, "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return e, err
		}
	}
}

// Unknown returns the exit of a generation whose shim is dead and has left no
// readable record, because of noRecord. It first ends what survived the shim.
func Unknown(ctx context.Context, looks *proc.Looks, l backends.Launch, pr backends.Proc, noRecord error, log *slog.Logger) backends.Exit {
	n, err := EndRest(ctx, looks, l.Bundle, l.Generation, []backends.ProcID{pr.Agent}, time.Second)
	e := backends.Exit{Generation: l.Generation, Code: -1, At: time.Now(), Leftover: n, Reason: backends.ReasonShimKilled}
	if err != nil {
		log.Error("end the processes that survived the shim", "agent", l.Agent, "err", err)
		e.Because(err.Error())
	}
	if !team.IsCode(noRecord, team.CodeNotFound) {
		e.Because(noRecord.Error())
	}
	return e
}

// Life is a living generation held by a shim, except for its terminal: a
// backend embeds it in its handle.
type Life struct {
	launch backends.Launch
	proc   backends.Proc
	looks  *proc.Looks

	watch  *proc.Watcher
	quit   chan struct{} // closed by Detach
	once   sync.Once
	ended  chan struct{} // closed when the watching goroutine ends
	exited chan struct{}
	exit   backends.Exit // set before exited is closed
}

// Follow starts watching the shim; it calls conclude once, when the shim has
// died. Scans of the process table that end it share looks, which may be nil.
func Follow(looks *proc.Looks, l backends.Launch, pr backends.Proc, conclude func() backends.Exit) (*Life, error) {
	w, err := proc.Watch(pr.Shim)
	if err != nil {
		return nil, err
	}
	f := &Life{
		launch: l, proc: pr, looks: looks, watch: w,
		quit: make(chan struct{}), ended: make(chan struct{}), exited: make(chan struct{}),
	}
	go f.follow(conclude)
	return f, nil
}

func (f *Life) follow(conclude func() backends.Exit) {
	defer close(f.ended)
	defer f.watch.Close()
	select {
	case <-f.watch.Done():
	case <-f.quit:
		return
	}
	f.exit = conclude()
	close(f.exited)
}

// Launch returns what was started.
func (f *Life) Launch() backends.Launch { return f.launch }

// Proc returns its process identity.
func (f *Life) Proc() backends.Proc { return f.proc }

// Exited is closed once the exit is known and recorded.
func (f *Life) Exited() <-chan struct{} { return f.exited }

// Exit is valid once Exited is closed.
func (f *Life) Exit() backends.Exit { return f.exit }

// Detach ends the watching; it waits for an exit that is being concluded.
func (f *Life) Detach() {
	f.once.Do(func() { close(f.quit) })
	<-f.ended
}

// Interrupt sends SIGINT like Ctrl-C, to the terminal's foreground group.
func (f *Life) Interrupt(context.Context) error {
	pgrp, err := proc.Foreground(f.proc.Agent)
	if errors.Is(err, proc.ErrGone) {
		return team.Errorf(team.CodeNotFound, "interrupt %s: it has exited", f.launch.Agent)
	}
	if err != nil {
		return fmt.Errorf("interrupt %s: %w", f.launch.Agent, err)
	}
	// The group that contains the shim would be wrong: the agent is not in the
	// foreground yet.
	if pgrp > 1 && pgrp != f.proc.Shim.PID {
		err = syscall.Kill(-pgrp, syscall.SIGINT)
	} else {
		err = proc.Signal(f.proc.Agent, syscall.SIGINT)
	}
	if err != nil {
		return fmt.Errorf("interrupt %s: %w", f.launch.Agent, err)
	}
	return nil
}

// Stop ends the process tree. Once begun it continues regardless of ctx: it
// takes at most grace and about forty seconds; a cancelled ctx only ends the
// grace.
func (f *Life) Stop(ctx context.Context, grace time.Duration) error {
	select {
	case <-f.exited:
		return nil
	default:
	}
	_ = proc.Signal(f.proc.Shim, syscall.SIGCONT) // it must reap
	_, err := f.looks.KillTree(ctx, GroupOf(f.launch.Bundle, f.launch.Generation), []backends.ProcID{f.proc.Agent}, f.launch.Generation, grace)
	if err != nil {
		return fmt.Errorf("stop %s: %w", f.launch.Agent, err)
	}
	if f.wait(5 * time.Second) {
		return nil
	}
	// A shim that does not notice the end of its agent (it is stopped, or hangs
	// on the disk) must not prevent a restart of the member.
	_ = proc.Signal(f.proc.Shim, syscall.SIGKILL)
	if f.wait(35 * time.Second) { // others end its processes and record that
		return nil
	}
	return team.Errorf(team.CodeTimeout, "stop %s: its exit was not recorded", f.launch.Agent)
}

func (f *Life) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-f.exited:
		return true
	case <-f.ended: // detached meanwhile, or exited
		select {
		case <-f.exited:
			return true
		default:
			return !proc.Alive(f.proc.Shim)
		}
	case <-t.C:
		return false
	}
}
