package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
)

// besideWithin is how long a server may take to listen.
const besideWithin = 30 * time.Second

// newBeside runs a server and, once it listens, a program that shows it. It is the
// process of an agent that consists of both, and ends as the program does; the
// server, with all else below it, is ended by the shim.
func newBeside(a *app) *cobra.Command {
	var (
		socket string
		count  int
	)
	cmd := &cobra.Command{
		Use: "beside --socket PATH --count N -- SERVER ARG... PROGRAM ARG...", Short: "Run a server and the program that shows it", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if count < 1 || count >= len(args) || socket == "" {
				return usage(cmd, "a server of --count words, a program after it, and --socket")
			}
			code, err := beside(cmd.Context(), socket, args[:count], args[count:], a.out.stderr)
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
	return cmd
}

func beside(ctx context.Context, socket string, server, program []string, stderr io.Writer) (int, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return 0, team.Errorf(team.CodeUnavailable, "make the directory of %s: %w", socket, err)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, team.Errorf(team.CodeUnavailable, "remove the old %s: %w", socket, err)
	}
	srv := exec.Command(server[0], server[1:]...) //nolint:gosec,noctx // it lives as long as this process
	srv.Stdout, srv.Stderr = io.Discard, stderr
	srv.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is the program's
	if err := srv.Start(); err != nil {
		return 0, team.Errorf(team.CodeUnavailable, "start %s: %w", server[0], err)
	}
	gone := make(chan struct{})
	go func() { // its status says nothing: it is ended with the program
		_ = srv.Wait()
		close(gone)
	}()
	stop := func() {
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
	}
	if err := listening(ctx, socket, gone); err != nil {
		stop()
		return 0, err
	}
	defer stop()
	cmd := exec.Command(program[0], program[1:]...) //nolint:gosec,noctx // a signal to this process is handed on
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, team.Errorf(team.CodeUnavailable, "start %s: %w", program[0], err)
	}
	// The terminal signals its whole group, the program with it; a signal to this
	// process alone is handed on.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(signals)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if n, ok := s.(syscall.Signal); ok && n != syscall.SIGINT {
				_ = cmd.Process.Signal(n)
			}
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				if st, ok := exit.Sys().(syscall.WaitStatus); ok && st.Signaled() {
					return 128 + int(st.Signal()), nil
				}
				return exit.ExitCode(), nil
			}
			return 0, err
		}
	}
}

// listening waits until somebody answers at the socket.
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
			return team.Errorf(team.CodeUnavailable, "the server ended before it listened on %s", socket)
		case <-ctx.Done():
			return team.Errorf(team.CodeTimeout, "the server does not listen on %s", socket)
		case <-tick.C:
		}
	}
}
