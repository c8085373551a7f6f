package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/courier/codex"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// besideWithin is the maximum time for a server to start listening.
const besideWithin = 30 * time.Second

// newBeside runs a server and, once it listens, a program that shows it. This is the process of an
// agent that consists of both. It exits with the program; the shim ends the server and all other
// descendants. If the server ends first, the program shows a conversation that is no more: it is
// ended, too, and this is a failure, whatever its exit status.
func newBeside(a *app) *cobra.Command {
	var (
		socket string
		count  int
		trust  int
	)
	cmd := &cobra.Command{
		Use: "beside --socket PATH --count N [--trust N] -- SERVER ARG... [ASKER ARG...] PROGRAM ARG...", Short: "Run a server and the program that shows it", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if count < 1 || trust < 0 || count+trust >= len(args) || socket == "" {
				return usage(cmd, "a server of --count words, a program after it and after the --trust words, and --socket")
			}
			code, err := beside(cmd.Context(), socket, args[:count], args[count:count+trust], args[count+trust:], a.out.stderr)
			if err != nil {
				return err
			}
			if code != 0 {
				return exitError(code)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "unix socket that the server listens on")
	cmd.Flags().IntVar(&count, "count", 0, "how many words are the server's")
	cmd.Flags().IntVar(&trust, "trust", 0, "how many words after them are of the program that asks whether the directory is trusted")
	return cmd
}

func beside(ctx context.Context, socket string, server, asker, program []string, stderr io.Writer) (int, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return 0, team.Errorf(team.CodeUnavailable, "create the directory of %s: %w", socket, err)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, team.Errorf(team.CodeUnavailable, "remove the old %s: %w", socket, err)
	}
	srv := exec.Command(server[0], server[1:]...) // it lives as long as this process
	srv.Stdout, srv.Stderr = io.Discard, stderr
	srv.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // keeps Ctrl-C for the program
	if err := srv.Start(); err != nil {
		return 0, team.Errorf(team.CodeUnavailable, "start %s: %w", server[0], err)
	}
	defer proc.Continue(srv.Process)()
	gone := make(chan struct{})
	var how error
	go func() {
		how = srv.Wait()
		close(gone)
	}()
	stop := sync.OnceFunc(func() {
		_ = syscall.Kill(-srv.Process.Pid, syscall.SIGTERM)
		t := time.NewTimer(5 * time.Second)
		defer t.Stop()
		select {
		case <-gone:
		case <-t.C:
			_ = syscall.Kill(-srv.Process.Pid, syscall.SIGKILL)
			<-gone
		}
		_ = os.Remove(socket)
	})
	if err := listening(ctx, socket, gone); err != nil {
		stop()
		return 0, err
	}
	defer stop()
	if len(asker) > 0 {
		read := func(ctx context.Context, dir string) (courier.Trust, error) {
			return codex.Trust(ctx, socket, dir)
		}
		if _, code, over, err := askTrust(ctx, read, asker, nil); over || err != nil {
			return code, err
		}
	}
	p, err := inForeground(program, nil)
	if err != nil {
		return 0, err
	}
	code, err := p.wait(gone)
	if err != nil || accepts(socket) {
		return code, err
	}
	stop()
	return 0, team.Errorf(team.CodeUnavailable, "the server of %s ended while its screen was open: %s", filepath.Base(program[0]), died(how))
}

// died is how a process ended.
func died(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// accepts reports whether a process listens on the socket. One that was killed has closed it
// before it can be waited for.
func accepts(socket string) bool {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err == nil {
		_ = c.Close()
	}
	return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, os.ErrNotExist)
}

// listening waits until a connection to the socket succeeds.
func listening(ctx context.Context, socket string, gone <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, besideWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var d net.Dialer
	for {
		if c, err := d.DialContext(ctx, "unix", socket); err == nil {
			return c.Close()
		}
		select {
		case <-gone:
			return team.Errorf(team.CodeUnavailable, "the server exited before it listened on %s", socket)
		case <-ctx.Done():
			return team.Errorf(team.CodeTimeout, "the server is not listening on %s", socket)
		case <-tick.C:
		}
	}
}
