package ledger

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/teamctl/teamctl/team"
)

// padAttempts is the maximum number of attempts of UpdateScratchpad: one of n
// writers succeeds in every round, so this suffices for more writers than a
// team has.
const padAttempts = 64

// UpdateScratchpad reads the shared document, calls change to compute a patch
// from it, and merges the patch; after a concurrent change it repeats all that.
// After a bounded number of attempts it returns the last conflict. It returns
// any other error, including that of change, at once. A nil patch changes
// nothing.
func (l *Ledger) UpdateScratchpad(ctx context.Context, change func(Scratchpad) (json.RawMessage, error)) (Scratchpad, error) {
	for n := 1; ; n++ {
		pad, err := l.Scratchpad(ctx)
		if err != nil {
			return Scratchpad{}, err
		}
		patch, err := change(pad)
		if err != nil || patch == nil {
			return pad, err
		}
		out, err := l.MergeScratchpad(ctx, patch, pad.Version)
		if team.ReasonOf(err) != team.ReasonScratchpad || n == padAttempts {
			return out, err
		}
		pause := time.NewTimer(rand.N(time.Duration(min(n, 10)) * time.Millisecond)) // jitter
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return Scratchpad{}, context.Cause(ctx)
		}
	}
}
