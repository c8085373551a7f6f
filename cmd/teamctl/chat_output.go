package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/teamctl/teamctl/team"
)

// whileOutput returns a context that ends with the first failed write to stdout. SIGPIPE is caught
// until stop, which returns the error for such an end: it would kill a process that runs a
// conversation in the middle of a turn, and leave the commands of its agent running.
func (a *app) whileOutput(ctx context.Context) (_ context.Context, stop func(error) error) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	stdout := a.out.stdout
	a.out.stdout = &watchedWriter{stdout, func(err error) { cancel(team.Errorf(team.CodeUnavailable, "write the result: %w", err)) }}
	return ctx, func(err error) error {
		signal.Stop(signals)
		if err == nil {
			err = a.out.failure()
		}
		if errors.Is(err, syscall.EPIPE) {
			return exitError(128 + int(syscall.SIGPIPE)) // as of any program whose reader has closed its output
		}
		return err
	}
}

// watchedWriter reports failed writes.
type watchedWriter struct {
	w      io.Writer
	failed func(error)
}

// Write implements io.Writer.
func (w *watchedWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		w.failed(err)
	}
	return n, err
}
