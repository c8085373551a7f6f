package holder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

const (
	// undoWithin limits the clean-up after a failed start.
	undoWithin = 15 * time.Second
	// lookEvery is the interval at which a start without events is checked, and
	// heardEvery that of a start whose shim sends events.
	lookEvery  = 10 * time.Millisecond
	heardEvery = 50 * time.Millisecond
)

// Starter holds what all starts of a backend with shims share.
type Starter struct {
	Argv     []string         // absolute command of the shim: [teamctl shim]
	Notifier *bundle.Notifier // nil: starts are noticed by polling
	Looks    *proc.Looks
	Log      *slog.Logger
}

// Way is how a backend runs the shim of one launch.
type Way struct {
	// Run starts the shim and records its pane (WritePane). It returns the
	// shim's pid even with an error that occurred after starting it.
	Run func() (pid int, err error)
	// Attach attaches to a generation that is up.
	Attach func(backends.Proc) error
	// Said returns the output of a shim that did not come up.
	Said func() string
	// Undo removes what Run has made, after everything of the generation has
	// ended.
	Undo func(ctx context.Context, pid int)
}

// Check checks that a launch is complete, before anything is made for it.
func (s *Starter) Check(l backends.Launch) error {
	if len(l.Argv) == 0 || l.Generation == "" || l.Agent == "" || !filepath.IsAbs(string(l.Bundle)) {
		return team.Errorf(team.CodeInvalid, "start %q: agent, generation, absolute bundle and command are needed", l.Agent)
	}
	if len(s.Argv) == 0 || !filepath.IsAbs(s.Argv[0]) {
		return team.Errorf(team.CodeInternal, "start %s: the shim's command must be absolute", l.Agent)
	}
	return nil
}

// Command returns the command that runs the shim of a launch.
func (s *Starter) Command(l backends.Launch) []string { return Command(s.Argv, l) }

// Start starts a generation and returns when it is up, or with nothing left of
// it. A member that is running, or being started, is CodeConflict.
func (s *Starter) Start(ctx context.Context, l backends.Launch, w Way) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("start %s: %w", l.Agent, err)
		}
	}()
	if err := os.MkdirAll(string(l.Bundle), 0o700); err != nil {
		return err
	}
	lk, err := bundle.LockStart(l.Bundle)
	if err != nil {
		return err
	}
	locked := true
	unlock := func() {
		if locked {
			lk.Unlock()
		}
		locked = false
	}
	defer unlock()
	if runs, err := bundle.Running(l.Bundle); err != nil {
		return err
	} else if runs {
		return team.Errorf(team.CodeConflict, "a generation of this member is running").WithReason(team.ReasonAlreadyRunning)
	}
	bundle.Sweep(l.Bundle)
	if err := bundle.WriteLaunch(l); err != nil {
		return err
	}
	var id backends.ProcID
	defer func() {
		if err != nil {
			s.undo(ctx, l, w, id)
		}
	}()
	if err := bundle.CreateLog(l.Bundle.Log()); err != nil {
		return err
	}
	var events <-chan bundle.Event
	look := lookEvery
	if s.Notifier != nil {
		var cancel func()
		events, cancel = s.Notifier.Subscribe(l.Agent, l.Generation)
		defer cancel()
		look = heardEvery
	}
	if id.PID, err = w.Run(); err != nil {
		return err
	}
	// From here on there is a shim. If it has already exited without leaving a
	// record, its output contains the reason.
	known, err := proc.IdentifyAny(id.PID)
	if err != nil && !errors.Is(err, proc.ErrGone) {
		return err
	}
	if err == nil {
		id = known
	}
	watch, err := proc.Watch(known)
	if err != nil {
		return err
	}
	defer watch.Close()
	unlock()
	up, err := WaitUp(ctx, l, events, watch.Done(), look)
	if errors.Is(err, ErrNoShim) {
		err = fmt.Errorf("%w: %s", err, w.Said())
	}
	if err != nil {
		return err
	}
	return w.Attach(up)
}

// undo removes everything of a failed start: without launch.json a shim that is
// still starting exits by itself.
func (s *Starter) undo(ctx context.Context, l backends.Launch, w Way, id backends.ProcID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
	defer cancel()
	_ = os.Remove(l.Bundle.Launch())
	var roots []backends.ProcID
	if id.BootID != "" {
		roots = append(roots, id)
	}
	if _, err := EndRest(ctx, s.Looks, l.Bundle, l.Generation, roots, 500*time.Millisecond); err != nil {
		s.Log.Warn("undo a failed start", "agent", l.Agent, "err", err)
	}
	w.Undo(ctx, id.PID)
}
