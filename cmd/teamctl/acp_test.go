package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
)

// TestRelayedSignals checks that an interrupt waits until it is received, that a second one is
// merged with it, and that SIGTERM ends the whole program.
func TestRelayedSignals(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	signals := make(chan os.Signal)
	turns, ended := relaySignals(ctx, signals, cancel)
	signals <- syscall.SIGINT
	signals <- syscall.SIGINT
	signals <- syscall.SIGTERM // the previous signals have been handled
	<-ended
	if n := len(turns); n != 1 {
		t.Errorf("%d interrupts wait", n)
	}
	var by signalError
	if err := context.Cause(ctx); !errors.As(err, &by) || by.signal != syscall.SIGTERM {
		t.Errorf("ended by %v", err)
	}
}
