package tmux

import (
	"context"
	"strings"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/holder"
)

// undoWithin limits the removal of a pane that is not recorded yet.
const undoWithin = 30 * time.Second

// Start starts a generation in a pane. An agent that cannot be executed counts
// as started: Exited reports it, with ExecFailed. Starting a member that is
// running, or being started, is CodeConflict.
func (b *Backend) Start(ctx context.Context, l backends.Launch) (backends.Handle, error) {
	if err := b.errClosed(); err != nil {
		return nil, err
	}
	if err := b.starter.Check(l); err != nil {
		return nil, err
	}
	if err := b.Check(ctx); err != nil {
		return nil, err
	}
	var at placed
	var a *attached
	err := b.starter.Start(ctx, l, holder.Way{
		Run: func() (pid int, err error) {
			if at, err = b.put(ctx, l); err != nil {
				return 0, err
			}
			return at.pid, bundle.WritePane(l.Bundle, at.pane)
		},
		Attach: func(up backends.Proc) (err error) {
			a, err = b.attach(l, up, at.pane, at.server)
			return err
		},
		Said: func() string { // it is in the pane
			out, err := at.server.run(context.WithoutCancel(ctx), "capture-pane", "-p", "-t", at.pane.PaneID)
			if err != nil {
				return "its pane does not exist"
			}
			return strings.Join(strings.Fields(out), " ")
		},
		Undo: func(ctx context.Context, _ int) { b.undo(ctx, l, at) },
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// undo removes the pane of a failed start, if it was created.
func (b *Backend) undo(ctx context.Context, l backends.Launch, at placed) {
	if at.server == nil {
		return
	}
	b.place.Lock()
	defer b.place.Unlock()
	if q, ok, err := at.server.find(ctx, at.pane.PaneID); err == nil && ok {
		if err := at.server.remove(ctx, q); err != nil {
			b.log.Warn("undo a failed start", "agent", l.Agent, "pane", at.pane.PaneID, "err", err)
		}
	}
}
