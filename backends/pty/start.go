package pty

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/proc"
	"github.com/teamctl/teamctl/backends/shim"
	"github.com/teamctl/teamctl/team"
)

// undoWithin bounds the clean-up after a failed start.
const undoWithin = 15 * time.Second

// socketMax is what a socket's path may have, with the final zero.
const socketMax = 107

// Start starts a generation on a terminal of its own. An agent that cannot be
// executed is started in this sense: Exited tells it, with ExecFailed. Starting a
// member that runs, or is being started, is CodeConflict.
func (b *Backend) Start(ctx context.Context, l backends.Launch) (backends.Handle, error) {
	if err := b.errClosed(); err != nil {
		return nil, err
	}
	if len(l.Argv) == 0 || l.Generation == "" || l.Agent == "" || !filepath.IsAbs(string(l.Bundle)) {
		return nil, team.Errorf(team.CodeInvalid, "start %q: agent, generation, absolute bundle and command are needed", l.Agent)
	}
	if len(b.opt.ShimArgv) == 0 || !filepath.IsAbs(b.opt.ShimArgv[0]) {
		return nil, team.Errorf(team.CodeInternal, "start %s: the shim's command must be absolute", l.Agent)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", l.Agent, context.Cause(ctx))
	}
	p := b.pane(l)
	if len(p.Socket) > socketMax {
		return nil, team.Errorf(team.CodeInvalid, "start %s: socket path %s is longer than %d bytes", l.Agent, p.Socket, socketMax).
			WithHint("set " + team.EnvRuntime + " to a short directory")
	}
	for _, dir := range []string{string(l.Bundle), filepath.Dir(p.Socket)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("start %s: %w", l.Agent, err)
		}
	}
	l.Terminal, l.Socket = Name, p.Socket
	lk, err := shim.LockStart(l.Bundle)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", l.Agent, err)
	}
	a, err := b.start(ctx, l, p, lk)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", l.Agent, err)
	}
	return a, nil
}

// start owns the lock.
func (b *Backend) start(ctx context.Context, l backends.Launch, p backends.Pane, lk *shim.Lock) (_ *attached, err error) {
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
	var id backends.ProcID
	defer func() {
		if err != nil {
			b.undo(ctx, l, id)
		}
	}()
	if err := shim.CreateLog(l.Bundle.Log()); err != nil {
		return nil, err
	}
	if err := shim.WritePane(l.Bundle, p); err != nil {
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
	pid, err := b.fork(l)
	if err != nil {
		return nil, err
	}
	// It is our child: until it is reaped the pid is its own.
	id, err = proc.IdentifyAny(pid)
	if err != nil {
		id = backends.ProcID{PID: pid}
		return nil, err
	}
	w, err := proc.Watch(id)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	unlock()
	pr, err := shim.WaitUp(ctx, l, events, w.Done(), look)
	if err != nil {
		if errors.Is(err, shim.ErrNoShim) {
			err = fmt.Errorf("%w: %s", err, complaint(l.Bundle))
		}
		return nil, err
	}
	return b.attach(l, pr, p)
}

// shimLog takes what the shim itself says: it has no terminal.
func shimLog(b team.Bundle) string { return filepath.Join(string(b), "shim.log") }

func complaint(b team.Bundle) string {
	t := shim.Tail(shimLog(b))
	return strings.TrimPrefix(strings.Join(strings.Fields(t), " "), "teamctl: error: shim: ")
}

// fork starts the shim in a session of its own. Not os/exec: the process is
// watched by a descriptor of ours, and nobody waits for it here.
func (b *Backend) fork(l backends.Launch) (pid int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, fmt.Errorf("start the shim: %w", err)
	}
	defer func() { _ = null.Close() }()
	fd, err := unix.Open(shimLog(l.Bundle), unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_APPEND|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, fmt.Errorf("start the shim: open its log: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	argv := append(append([]string{}, b.opt.ShimArgv...), "--bundle", string(l.Bundle), "--generation", l.Generation)
	pid, err = syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Dir: "/", Env: shimEnv(os.Environ()), Files: []uintptr{null.Fd(), null.Fd(), uintptr(fd)},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("start the shim: %w", err)
	}
	return pid, nil
}

// shimEnv marks the shim as nobody's descendant: a supervisor that an agent of
// another generation has started must not hand it down to be stopped with it.
func shimEnv(env []string) []string {
	out := make([]string, 0, len(env)+1)
	for _, kv := range env {
		k, _, _ := strings.Cut(kv, "=")
		if k != team.EnvGen && k != proc.EnvDetached {
			out = append(out, kv)
		}
	}
	return append(out, proc.EnvDetached+"=1", shim.EnvThreads)
}

// undo leaves nothing of a start that failed: without launch.json a shim that is
// still coming up goes away by itself.
func (b *Backend) undo(ctx context.Context, l backends.Launch, id backends.ProcID) {
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
	reap(id)
	_ = os.Remove(l.Socket)
}

// reap takes a dead shim's status off the process table, if it is our child. Its
// exit.json has said more.
func reap(id backends.ProcID) {
	if id.PID <= 0 {
		return
	}
	for {
		_, err := syscall.Wait4(id.PID, nil, syscall.WNOHANG, nil)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
