//go:build !linux

package filelock

import (
	"context"
	"time"
)

// Elsewhere byte locks and flock exclude each other on one file, so there is no
// turnstile: exclusion holds, fairness is left to the jitter.
func tryTurnstile(context.Context, int) (bool, error) { return true, nil }

func leaveTurnstile(int) {}

func nap(d time.Duration) { _ = timer(context.Background(), d) }
