package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/proc"
	"github.com/teamctl/teamctl/backends/shim"
	"github.com/teamctl/teamctl/team"
)

// undoWithin bounds the clean-up after a failed start.
const undoWithin = 15 * time.Second

// Start starts a generation in a pane. An agent that cannot be executed is
// started in this sense: Exited tells it, with ExecFailed. Starting a member that
// runs, or is being started, is CodeConflict.
func (b *Backend) Start(ctx context.Context, l backends.Launch) (backends.Handle, error) {
	if err := b.errClosed(); err != nil {
		return nil, err
	}
	if len(l.Argv) == 0 || l.Generation == "" || l.Bundle == "" || l.Agent == "" {
		return nil, team.Errorf(team.CodeInvalid, "start %q: agent, generation, bundle and command are needed", l.Agent)
	}
	if len(b.opt.ShimArgv) == 0 || !filepath.IsAbs(b.opt.ShimArgv[0]) {
		return nil, team.Errorf(team.CodeInternal, "start %s: the shim's command must be absolute", l.Agent)
	}
	if err := b.Check(ctx); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(string(l.Bundle), 0o700); err != nil {
		return nil, fmt.Errorf("start %s: %w", l.Agent, err)
	}
	lk, err := shim.LockStart(l.Bundle)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", l.Agent, err)
	}
	a, err := b.start(ctx, l, lk)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", l.Agent, err)
	}
	return a, nil
}

// start owns the lock.
func (b *Backend) start(ctx context.Context, l backends.Launch, lk *shim.Lock) (_ *attached, err error) {
	locked := true
	unlock := func() {
		if locked {
			lk.Unlock()
		}
		locked = false
	}
	defer unlock()
	if runs, err := shim.Running(l.Bundle); err != nil {
		return nil, err
	} else if runs {
		return nil, team.Errorf(team.CodeConflict, "a generation of this member lives").WithReason("already_running")
	}
	shim.Sweep(l.Bundle)
	if err := shim.WriteLaunch(l); err != nil {
		return nil, err
	}
	if err := shim.CreateLog(l.Bundle.Log()); err != nil {
		return nil, err
	}
	var events <-chan shim.Event
	look := 10 * time.Millisecond
	if b.opt.Notifier != nil {
		var cancel func()
		events, cancel = b.opt.Notifier.Subscribe(l.Agent, l.Generation)
		defer cancel()
		look = 50 * time.Millisecond
	}
	at, err := b.put(ctx, l)
	if err != nil {
		b.undo(ctx, l, nil, backends.Pane{}, backends.ProcID{})
		return nil, err
	}
	s, p, pid := at.server, at.pane, at.pid
	// From here on there is a shim. One that is gone already has left its reason in
	// the pane, if not a record.
	id, err := proc.IdentifyAny(pid)
	if err != nil && !errors.Is(err, proc.ErrGone) {
		b.undo(ctx, l, s, p, backends.ProcID{PID: pid})
		return nil, err
	}
	w, err := proc.Watch(id)
	if err == nil {
		defer w.Close()
		err = shim.WritePane(l.Bundle, p)
	}
	if err != nil {
		b.undo(ctx, l, s, p, id)
		return nil, err
	}
	unlock()
	pr, err := shim.WaitUp(ctx, l, events, w.Done(), look)
	if err != nil {
		if errors.Is(err, shim.ErrNoShim) {
			if out, e := s.run(context.WithoutCancel(ctx), "capture-pane", "-p", "-t", p.PaneID); e == nil {
				err = fmt.Errorf("%w: %s", err, strings.Join(strings.Fields(out), " "))
			}
		}
		b.undo(ctx, l, s, p, id)
		return nil, err
	}
	a, err := b.attach(l, pr, p, s)
	if err != nil {
		b.undo(ctx, l, s, p, id)
		return nil, err
	}
	return a, nil
}

// undo leaves nothing of a start that failed: without launch.json a shim that is
// still coming up goes away by itself.
func (b *Backend) undo(ctx context.Context, l backends.Launch, s *server, p backends.Pane, id backends.ProcID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
	defer cancel()
	_ = os.Remove(l.Bundle.Launch())
	roots := []backends.ProcID{}
	if id.BootID != "" {
		roots = append(roots, id)
	}
	if _, err := shim.EndRest(ctx, &b.looks, l.Bundle, l.Generation, roots, 500*time.Millisecond); err != nil {
		b.log.Warn("undo a failed start", "agent", l.Agent, "err", err)
	}
	if s == nil {
		return
	}
	b.place.Lock()
	defer b.place.Unlock()
	if q, ok, err := s.find(ctx, p.PaneID); err == nil && ok {
		if err := s.remove(ctx, q); err != nil {
			b.log.Warn("undo a failed start", "agent", l.Agent, "pane", p.PaneID, "err", err)
		}
	}
}
