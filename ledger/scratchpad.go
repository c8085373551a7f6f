package ledger

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/teamctl/teamctl/team"
)

// padAttempts is how often UpdateScratchpad tries at most: with n writers one of
// them wins in every round, so this is for more writers than a team has.
const padAttempts = 64

// UpdateScratchpad reads the shared document, has change compute a patch from
// it, and merges that; when somebody else was faster it does so again. It gives
// up with the last conflict after a bounded number of tries, and returns at once
// what change or anything else fails with. A nil patch changes nothing.
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
		if team.ReasonOf(err) != ReasonScratchpad || n == padAttempts {
			return out, err
		}
		pause := time.NewTimer(rand.N(time.Duration(min(n, 10)) * time.Millisecond)) //nolint:gosec // jitter
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return Scratchpad{}, context.Cause(ctx)
		}
	}
}
