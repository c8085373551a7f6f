package inproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// Name is the name of the backend.
const Name = "in-process"

// Reasons of an exit and of errors.
const (
	ReasonStopped   = team.WhyStopped   // the agent ended because it was stopped
	ReasonOwnerGone = team.WhyOwnerGone // the process that contained it has exited
	ReasonLeaked    = "leaked"          // of an error: it ignores the cancellation
)

// Options configures a Backend. Layout and Run are required.
type Options struct {
	Layout team.Layout
	// Run is the agent. It must return when ctx is cancelled. nil is exit
	// status 0; for an error the status is the result of its method ExitCode()
	// int, if it has one, otherwise 1. out is the member's output.log: writing
	// never fails and blocks only on the disk.
	Run func(ctx context.Context, l backends.Launch, out io.Writer) error
	Log *slog.Logger // nil: silent
	// LeakAfter is how long an agent may take to end after the grace period of
	// Stop. Default 5 s.
	LeakAfter time.Duration
}

// Backend is the in-process backend of one team.
type Backend struct {
	opt Options
	log *slog.Logger

	mu     sync.Mutex
	closed bool
	live   map[*generation]struct{}

	left *leftovers
}

var _ backends.Backend = (*Backend)(nil)

// New returns the backend of one team.
func New(opt Options) *Backend {
	if opt.LeakAfter <= 0 {
		opt.LeakAfter = 5 * time.Second
	}
	log := opt.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Backend{opt: opt, log: log, live: map[*generation]struct{}{}, left: newLeftovers()}
}

// Name returns "in-process".
func (b *Backend) Name() string { return Name }

// Check succeeds if there is an agent to run.
func (b *Backend) Check(context.Context) error {
	if b.opt.Run == nil {
		return team.Errorf(team.CodeUnavailable, "this build has no built-in agent").WithHint("use --backend tmux or pty")
	}
	return nil
}

// Start starts a generation. A member with a living generation, even a leaked
// one, is CodeConflict.
func (b *Backend) Start(ctx context.Context, l backends.Launch) (backends.Handle, error) {
	if l.Generation == "" || l.Agent == "" || !filepath.IsAbs(string(l.Bundle)) {
		return nil, team.Errorf(team.CodeInvalid, "start %q: agent, generation and absolute bundle are needed", l.Agent)
	}
	if err := b.Check(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("start %s: %w", l.Agent, context.Cause(ctx))
	}
	if err := os.MkdirAll(string(l.Bundle), 0o700); err != nil {
		return nil, fmt.Errorf("start %s: %w", l.Agent, err)
	}
	lk, err := bundle.LockStart(l.Bundle)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", l.Agent, err)
	}
	defer lk.Unlock()
	g, err := b.start(l)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", l.Agent, err)
	}
	return g, nil
}

func (b *Backend) start(l backends.Launch) (_ *generation, err error) {
	run, err := bundle.LockRun(l.Bundle)
	if err != nil {
		if b.leaks(l.Bundle) {
			return nil, team.Errorf(team.CodeConflict, "an earlier generation has not ended").WithReason(ReasonLeaked).
				WithHint("restart the supervisor to end it")
		}
		return nil, err
	}
	defer func() {
		if err != nil {
			run.Unlock()
		}
	}()
	bundle.Sweep(l.Bundle)
	self, err := proc.Self()
	if err != nil {
		return nil, err
	}
	l.Env = withGeneration(l.Env, l.Generation)
	g := &generation{
		b: b, launch: l, run: run,
		proc:     backends.Proc{Generation: l.Generation, Shim: self, Agent: self, StartedAt: time.Now()},
		pane:     team.Pane{Generation: l.Generation, Backend: Name, PaneID: team.PaneInProcess},
		returned: make(chan struct{}), ended: make(chan struct{}),
	}
	if err := errors.Join(bundle.WriteLaunch(l), bundle.WritePane(l.Bundle, g.pane), bundle.WriteProc(l.Bundle, g.proc)); err != nil {
		return nil, errors.Join(err, forget(l.Bundle))
	}
	if g.out, err = bundle.OpenLog(l.Bundle.Log()); err != nil {
		return nil, errors.Join(err, forget(l.Bundle))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errors.Join(team.Errorf(team.CodeUnavailable, "the in-process backend is closed"), g.out.Close(), forget(l.Bundle))
	}
	var ctx context.Context
	ctx, g.cancel = context.WithCancelCause(context.Background())
	b.live[g] = struct{}{}
	go g.live(ctx)
	return g, nil
}

// forget undoes a launch of which nothing has run.
func forget(b team.Bundle) error {
	if err := os.Remove(b.Launch()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func withGeneration(env []string, gen string) []string {
	out := make([]string, 0, len(env)+1)
	for _, kv := range env {
		switch k, _, _ := strings.Cut(kv, "="); k {
		case team.EnvGen, proc.EnvDetached, "TMUX", "TMUX_PANE": // it has no terminal, not even its launcher's
		default:
			out = append(out, kv)
		}
	}
	return append(out, team.EnvGen+"="+gen)
}

// leaks reports whether a cancelled generation of the bundle is alive in this
// process.
func (b *Backend) leaks(dir team.Bundle) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for g := range b.live {
		if g.launch.Bundle == dir && g.leaked {
			return true
		}
	}
	return false
}

// Adopt finds a generation that is alive in this process. Any other has ended
// with its process: Adopt ends what it left, records its exit as unknown unless
// it is known, and returns CodeNotFound.
func (b *Backend) Adopt(ctx context.Context, dir team.Bundle) (backends.Attached, error) {
	l, err := bundle.ReadLaunch(dir, "")
	if err != nil {
		return nil, fmt.Errorf("adopt: %w", err)
	}
	l.Bundle = dir
	p, err := bundle.ReadPane(dir, l.Generation)
	if err != nil && !team.IsCode(err, team.CodeNotFound) {
		return nil, fmt.Errorf("adopt %s: %w", l.Agent, err)
	}
	if p.Backend != "" && p.Backend != Name {
		return nil, team.Errorf(team.CodeInvalid, "adopt %s: it was started by the backend %s", l.Agent, p.Backend)
	}
	b.mu.Lock()
	for g := range b.live {
		if g.launch.Generation == l.Generation {
			b.mu.Unlock()
			return g, nil
		}
	}
	b.mu.Unlock()
	lk, err := bundle.LockRun(dir)
	if err != nil { // another supervisor has it
		return nil, fmt.Errorf("adopt %s: %w", l.Agent, err)
	}
	defer lk.Unlock()
	if _, noRecord := bundle.ReadExit(dir, l.Generation); noRecord != nil {
		n, kerr := proc.KillTree(ctx, nil, l.Generation, time.Second)
		e := backends.Exit{Generation: l.Generation, Code: -1, Reason: ReasonOwnerGone, At: time.Now(), Leftover: n}
		if kerr != nil {
			e.Reason += "; " + kerr.Error()
		}
		if err := bundle.WriteLostExit(dir, e, noRecord); err != nil {
			return nil, fmt.Errorf("adopt %s: %w", l.Agent, err)
		}
	}
	return nil, team.Errorf(team.CodeNotFound, "adopt %s: generation %s ended with its supervisor", l.Agent, l.Generation)
}

// CloseTeam does nothing: nothing belongs to the team as a whole.
func (b *Backend) CloseTeam(context.Context) error { return nil }

// Close ends the agents, which cannot outlive this process; their exits are
// recorded as unknown, so that the next supervisor starts them again. The error
// reports agents that do not end within LeakAfter.
func (b *Backend) Close() error {
	b.mu.Lock()
	b.closed = true
	gs := make([]*generation, 0, len(b.live))
	for g := range b.live {
		gs = append(gs, g)
	}
	b.mu.Unlock()
	for _, g := range gs {
		g.cancel(errOwnerGone)
	}
	deadline := time.NewTimer(b.opt.LeakAfter)
	defer deadline.Stop()
	for i, g := range gs {
		select {
		case <-g.ended:
			continue
		case <-deadline.C:
		}
		left := 0
		for _, g := range gs[i:] {
			select {
			case <-g.ended:
			default:
				left++
			}
		}
		if left == 0 {
			return nil
		}
		return team.Errorf(team.CodeTimeout, "close the in-process backend: %d agents have not ended", left).WithReason(ReasonLeaked)
	}
	return nil
}
