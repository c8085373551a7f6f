//go:build !linux

package filelock

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/internal/pause"
)

// On other systems byte locks and flock exclude each other on one file, so
// there is no queue: exclusion holds, fairness depends on the jitter.
type waiter struct{}

func (*slot) standInLine(_ context.Context, path string) (int, error) { return open(path) }

func leaveTurnstile(int) {}

func leaveSeat(int) {}

func nap(d time.Duration) { _ = pause.For(context.Background(), d) }
