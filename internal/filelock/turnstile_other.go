//go:build !linux

package filelock

import (
	"context"
	"time"
)

// Elsewhere byte locks and flock exclude each other on one file, so there is no
// line: exclusion holds, fairness is left to the jitter.
type waiter struct{}

func (*slot) standInLine(_ context.Context, path string) (int, error) { return open(path) }

func leaveTurnstile(int) {}

func leaveSeat(int) {}

func nap(d time.Duration) { _ = timer(context.Background(), d) }
