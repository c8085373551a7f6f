package filelock

import (
	"context"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/teamctl/teamctl/internal/pause"
)

// Steps of a wait. A mailbox is held for some 20 microseconds, a ledger for one
// fsync, so most waits end in the first two; only a lock held for long, like a
// supervisor's, reaches the slow one, which costs no measurable CPU.
const (
	yields    = 4
	naps      = 64
	quickSpan = 128
)

// backOff waits a moment before attempt n+1, or returns ctx.Err(). The jitter
// keeps waiters from polling in step.
func backOff(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case n < yields:
		runtime.Gosched()
		return nil
	case n < naps:
		nap(40*time.Microsecond + rand.N(80*time.Microsecond))
		return nil
	case n < quickSpan:
		return pause.For(ctx, time.Millisecond+rand.N(2*time.Millisecond))
	default:
		return pause.For(ctx, 5*time.Millisecond+rand.N(20*time.Millisecond))
	}
}
