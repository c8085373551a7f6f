package inproc

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// Causes of a cancelled context.
var (
	errStopped   = errors.New("stopped")
	errOwnerGone = errors.New("the supervisor is stopping")
)

const (
	// leftoverGrace is the grace period for commands that outlive their agent.
	leftoverGrace = 2 * time.Second
	// panicCode is the exit status of a Go program that panics.
	panicCode = 2
	// captureBytes limits how much Capture reads; screenLines is the number of
	// lines it returns without scrollback.
	captureBytes = 256 << 10
	screenLines  = 40
)

// generation is one agent's goroutine.
type generation struct {
	b      *Backend
	launch backends.Launch
	proc   backends.Proc
	pane   team.Pane
	out    *bundle.LogFile
	run    *bundle.Lock // held for life
	cancel context.CancelCauseFunc
	leaked bool // guarded by Backend.mu

	returned chan struct{} // closed when the agent's goroutine has ended, before what it left has
	ended    chan struct{}
	exit     backends.Exit // set before ended is closed
}

var _ backends.Handle = (*generation)(nil)

// live is the goroutine of the generation, until its end is recorded.
func (g *generation) live(ctx context.Context) {
	began := time.Now()
	e := g.call(ctx)
	close(g.returned)
	e.Ran = time.Since(began)
	g.cancel(nil)
	e.Generation, e.At = g.launch.Generation, time.Now()
	if g.b.left.of(g.launch.Generation) {
		n, err := proc.KillTree(context.Background(), nil, g.launch.Generation, leftoverGrace)
		e.Leftover = n
		if err != nil {
			e.Reason = join(e.Reason, err.Error())
		}
	}
	if err := g.out.Close(); err != nil {
		g.b.log.Warn("close the log", "agent", g.launch.Agent, "err", err)
	}
	e.Tail = bundle.Tail(g.launch.Bundle.Log())
	if err := bundle.WriteExit(g.launch.Bundle, e); err != nil {
		g.b.log.Error("record an exit", "agent", g.launch.Agent, "err", err)
	}
	g.exit = e
	g.run.Unlock()
	g.b.mu.Lock()
	delete(g.b.live, g)
	g.b.mu.Unlock()
	close(g.ended)
}

// call recovers panics of the agent.
func (g *generation) call(ctx context.Context) (e backends.Exit) {
	returned := make(chan backends.Exit, 1)
	// A separate goroutine: runtime.Goexit in the agent (for example a test's
	// FailNow) must not end the goroutine that records the exit.
	go func() {
		e := backends.Exit{Known: true, Code: 1, Reason: team.WhyGoexit}
		defer func() { returned <- e }()
		defer func() {
			if v := recover(); v != nil {
				e = backends.Exit{Known: true, Code: panicCode, Reason: team.WhyPanic + fmt.Sprint(v)}
				_, _ = fmt.Fprintf(g.out, "panic: %v\n\n%s", v, debug.Stack())
			}
		}()
		e = outcome(g.b.opt.Run(ctx, g.launch, g.out))
	}()
	e = <-returned
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errOwnerGone):
		// However it ended, it did not end by itself, and must be started
		// again.
		return backends.Exit{Code: -1, Reason: ReasonOwnerGone}
	case errors.Is(cause, errStopped) && e.Code != panicCode:
		e.Reason = join(ReasonStopped, e.Reason)
	}
	return e
}

func outcome(err error) backends.Exit {
	e := backends.Exit{Known: true}
	if err == nil {
		return e
	}
	e.Code, e.Reason = 1, err.Error()
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		e.Code = coded.ExitCode()
	}
	return e
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

func (g *generation) Launch() backends.Launch { return g.launch }
func (g *generation) Proc() backends.Proc     { return g.proc }
func (g *generation) Pane() team.Pane         { return g.pane }
func (g *generation) Exited() <-chan struct{} { return g.ended }
func (g *generation) Exit() backends.Exit     { return g.exit }

// Detach does nothing: the agent is in this process.
func (g *generation) Detach() {}

// Stop cancels the agent and waits for its end: for grace, which a cancelled
// ctx shortens, and then for Options.LeakAfter. If it has not ended by then,
// the error is CodeTimeout with the reason "leaked", and its generation stays
// alive. Stop then ends the commands that it has left, which takes additional
// time.
func (g *generation) Stop(ctx context.Context, grace time.Duration) error {
	g.cancel(errStopped)
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-g.ended:
		return nil
	case <-t.C:
	case <-ctx.Done():
	}
	leak := time.NewTimer(g.b.opt.LeakAfter)
	defer leak.Stop()
	select {
	case <-g.ended:
		return nil
	case <-g.returned:
		<-g.ended // limited as in proc.KillTree
		return nil
	case <-leak.C:
	}
	select {
	case <-g.returned: // just ended
		<-g.ended
		return nil
	default:
	}
	g.b.mu.Lock()
	g.leaked = true
	g.b.mu.Unlock()
	return team.Errorf(team.CodeTimeout, "stop %s: its goroutine ignores the cancellation", g.launch.Agent).
		WithReason(ReasonLeaked).WithHint("restart the supervisor to end it")
}

// over returns CodeNotFound once the agent has exited.
func (g *generation) over(verb string) error {
	select {
	case <-g.ended:
		return team.Errorf(team.CodeNotFound, "%s %s: it has exited", verb, g.launch.Agent)
	default:
		return nil
	}
}

func (g *generation) noTerminal(verb string) error {
	if err := g.over(verb); err != nil {
		return err
	}
	return team.Errorf(team.CodeUnavailable, "%s %s: an in-process teammate has no terminal", verb, g.launch.Agent).
		WithReason(team.ReasonNoTerminal).WithHint("teamctl send " + g.launch.Agent)
}

// Interrupt returns an error: there is no terminal.
func (g *generation) Interrupt(context.Context) error { return g.noTerminal("interrupt") }

// TypeText returns an error: there is no terminal.
func (g *generation) TypeText(context.Context, string, bool) error { return g.noTerminal("type to") }

// Resize returns an error: there is no terminal.
func (g *generation) Resize(context.Context, int, int) error { return g.noTerminal("resize") }

// Capture returns the end of the log: forty lines plus scrollback.
func (g *generation) Capture(_ context.Context, scrollback int) (string, error) {
	if err := g.over("capture"); err != nil {
		return "", err
	}
	return bundle.TailOf(g.launch.Bundle.Log(), captureBytes, screenLines+max(0, scrollback)), nil
}

// Dispose has nothing to remove. A generation that is still running is
// CodeConflict.
func (g *generation) Dispose(context.Context) error {
	select {
	case <-g.ended:
		return nil
	default:
		return team.Errorf(team.CodeConflict, "dispose of %s: it is still running", g.launch.Agent)
	}
}
