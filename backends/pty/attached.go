package pty

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/holder"
	"github.com/teamctl/teamctl/backends/pty/vt"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/sgr"
	"github.com/teamctl/teamctl/team"
)

// attached is a generation on a terminal of its own, started or adopted.
type attached struct {
	*holder.Life
	b    *Backend
	pane team.Pane
}

var (
	_ backends.Handle = (*attached)(nil)
	_ backends.Viewer = (*attached)(nil)
)

// Adopt attaches to the generation in the bundle. If it has ended, Adopt makes
// sure that exit.json records it, ends what survived it, and returns
// CodeNotFound.
func (b *Backend) Adopt(ctx context.Context, dir team.Bundle) (backends.Attached, error) {
	if err := b.errClosed(); err != nil {
		return nil, err
	}
	l, err := bundle.ReadLaunch(dir, "")
	if err != nil {
		return nil, fmt.Errorf("adopt: %w", err)
	}
	l.Bundle = dir
	if l.Terminal != Name {
		return nil, team.Errorf(team.CodeInvalid, "adopt %s: it was not started by the backend %s", l.Agent, Name)
	}
	pr, err := holder.AwaitProc(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("adopt %s: %w", l.Agent, err)
	}
	p, err := bundle.ReadPane(dir, l.Generation)
	if err != nil { // launch.json contains the socket, and the id can be computed again
		p = b.pane(l)
		p.Socket = l.Socket
	}
	if !proc.Alive(pr.Shim) {
		b.conclude(l, pr)
		return nil, team.Errorf(team.CodeNotFound, "adopt %s: generation %s has ended", l.Agent, l.Generation)
	}
	return b.attach(l, pr, p)
}

func (b *Backend) attach(l backends.Launch, pr backends.Proc, p team.Pane) (*attached, error) {
	a := &attached{b: b, pane: p}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, team.Errorf(team.CodeUnavailable, "the pty backend is closed")
	}
	life, err := holder.Follow(&b.looks, l, pr, func() backends.Exit { return b.conclude(l, pr) })
	if err != nil {
		return nil, err
	}
	a.Life = life
	b.live[a] = struct{}{}
	return a, nil
}

func (b *Backend) conclude(l backends.Launch, pr backends.Proc) backends.Exit {
	e := holder.Conclude(&b.looks, l, pr, b.log)
	reap(pr.Shim.PID)
	return e
}

func (a *attached) Pane() team.Pane { return a.pane }

// Detach ends the watching; it waits for an exit that is being concluded.
func (a *attached) Detach() {
	a.Life.Detach()
	a.b.mu.Lock()
	delete(a.b.live, a)
	a.b.mu.Unlock()
}

// TypeText types text, without its control characters except newline and tab,
// and then a carriage return if enter is set. It returns once the terminal has
// it. A program that reads lines gets at most 4095 bytes of each: a longer line
// is refused (CodeLimit). A program that does not read is CodeTimeout or, if
// its queue is full, CodeUnavailable; the message says whether the text remains
// queued.
func (a *attached) TypeText(ctx context.Context, text string, enter bool) error {
	_, err := a.call(ctx, "type to", kindType, typeIn{Text: text, Enter: enter})
	return err
}

// Capture returns the screen as text. For an agent that has exited it returns
// CodeNotFound; its Exit contains the last output.
func (a *attached) Capture(ctx context.Context, scrollback int) (string, error) {
	return a.call(ctx, "capture", kindCapture, captureIn{Scrollback: scrollback})
}

// View is Capture with colours, by a connection of its own: a client that watches gets everything
// that the program writes, however much that is, and does not learn of another size. A shim of an
// earlier version leaves the colours out.
func (a *attached) View(ctx context.Context, scrollback int) ([]string, error) {
	text, err := a.call(ctx, "view", kindCapture, captureIn{Scrollback: scrollback, Colors: true})
	if err != nil {
		return nil, err
	}
	return sgr.Lines(text), nil
}

// ViewEvery implements backends.Viewer.
func (a *attached) ViewEvery() time.Duration { return backends.FrameEvery }

// Resize sets the terminal's size, until an attached client sets its own.
func (a *attached) Resize(ctx context.Context, cols, rows int) error {
	if cols < 1 || rows < 1 || cols > vt.MaxSize || rows > vt.MaxSize {
		return team.Errorf(team.CodeInvalid, "resize %s to %dx%d", a.Launch().Agent, cols, rows)
	}
	_, err := a.call(ctx, "resize", kindSize, sizeIn{cols, rows})
	return err
}

// Dispose removes what is left of the terminal. A generation that is still
// running is CodeConflict.
func (a *attached) Dispose(context.Context) error {
	l := a.Launch()
	if proc.Alive(a.Proc().Shim) {
		return team.Errorf(team.CodeConflict, "dispose of %s: it is still running", l.Agent)
	}
	// A later generation has the same path.
	if runs, err := bundle.Running(l.Bundle); err != nil || runs {
		return err
	}
	if err := os.Remove(a.pane.Socket); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("dispose of %s: %w", l.Agent, err)
	}
	return nil
}
