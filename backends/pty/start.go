package pty

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/holder"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// socketMax is the maximum length of a socket's path, with the final zero.
const socketMax = 107

// Start starts a generation on a terminal of its own. An agent that cannot be
// executed counts as started: Exited reports it, with ExecFailed. Starting a
// member that is running, or being started, is CodeConflict.
func (b *Backend) Start(ctx context.Context, l backends.Launch) (backends.Handle, error) {
	if err := b.errClosed(); err != nil {
		return nil, err
	}
	if err := b.starter.Check(l); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", l.Agent, context.Cause(ctx))
	}
	p := b.pane(l)
	if len(p.Socket) > socketMax {
		return nil, team.Errorf(team.CodeInvalid, "start %s: socket path %s is longer than %d bytes", l.Agent, p.Socket, socketMax).
			WithHint("set " + team.EnvRuntime + " to a short directory")
	}
	if err := backends.SecureRuntime(filepath.Dir(p.Socket)); err != nil {
		return nil, fmt.Errorf("start %s: %w", l.Agent, err)
	}
	l.Terminal, l.Socket = Name, p.Socket
	var a *attached
	err := b.starter.Start(ctx, l, holder.Way{
		Run: func() (pid int, err error) { // a child of this process: its pid is not reused until it is reaped
			if err := bundle.WritePane(l.Bundle, p); err != nil {
				return 0, err
			}
			return b.fork(l)
		},
		Attach: func(up backends.Proc) (err error) {
			a, err = b.attach(l, up, p)
			return err
		},
		Said: func() string { return shimError(l.Bundle) },
		Undo: func(_ context.Context, pid int) {
			reap(pid)
			_ = os.Remove(l.Socket)
		},
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// shimLog returns the path of the shim's own output: it has no terminal.
func shimLog(b team.Bundle) string { return filepath.Join(string(b), "shim.log") }

func shimError(b team.Bundle) string {
	t := bundle.Tail(shimLog(b))
	return strings.TrimPrefix(strings.Join(strings.Fields(t), " "), "teamctl: error: shim: ")
}

// fork starts the shim in a session of its own. It does not use os/exec,
// because the process is watched through a descriptor, and nothing waits for
// it.
func (b *Backend) fork(l backends.Launch) (pid int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, fmt.Errorf("start the shim: %w", err)
	}
	defer func() { _ = null.Close() }()
	log, err := regular.OpenFile(shimLog(l.Bundle), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, fmt.Errorf("start the shim: open its log: %w", err)
	}
	defer func() { _ = log.Close() }()
	argv := b.starter.Command(l)
	pid, err = syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Dir: "/", Env: shimEnv(os.Environ()), Files: []uintptr{null.Fd(), null.Fd(), log.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("start the shim: %w", err)
	}
	return pid, nil
}

// shimEnv marks the shim as detached from its ancestors: if an agent of another
// generation has started this supervisor, stopping that agent must not stop the
// shim too.
func shimEnv(env []string) []string {
	out := make([]string, 0, len(env)+1)
	for _, kv := range env {
		k, _, _ := strings.Cut(kv, "=")
		if k != team.EnvGen && k != proc.EnvDetached {
			out = append(out, kv)
		}
	}
	return append(out, proc.EnvDetached+"=1", holder.EnvThreads)
}

// reap removes a dead shim from the process table if it is a child of this
// process. Its exit.json contains more than its status.
func reap(pid int) {
	if pid <= 0 {
		return
	}
	for {
		_, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
