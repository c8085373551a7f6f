package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
)

// An interrupt that comes while nobody looks is kept, a second one is the same, and SIGTERM
// ends more than a turn.
func TestRelayedSignals(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	signals := make(chan os.Signal)
	turns, ended := relaySignals(ctx, signals, cancel)
	signals <- syscall.SIGINT
	signals <- syscall.SIGINT
	signals <- syscall.SIGTERM // what was before is done
	<-ended
	if n := len(turns); n != 1 {
		t.Errorf("%d interrupts wait", n)
	}
	var by signalError
	if err := context.Cause(ctx); !errors.As(err, &by) || by.signal != syscall.SIGTERM {
		t.Errorf("ended by %v", err)
	}
}
