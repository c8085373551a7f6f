package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/teamctl/teamctl/internal/hookcall"
	"github.com/teamctl/teamctl/ledger"
)

// hookFrames answers the small program, which asks for an agent's hook whether anything is left to
// do (package hookcall).
type hookFrames struct {
	ledger *ledger.Ledger
	// quiet runs the hook if nothing waits, and reports whether it has; nil: it never has.
	quiet func(context.Context, *ledger.Ledger, hookcall.Request) bool
}

func (f hookFrames) answer(ctx context.Context, frame []byte) (json.RawMessage, error) {
	r, err := hookcall.Parse(frame)
	if err != nil {
		return nil, errFrame
	}
	// What is recorded late could replace what a later hook has seen.
	ctx, cancel := context.WithDeadline(ctx, r.At.Add(hookcall.Within/2))
	defer cancel()
	if f.quiet != nil && ctx.Err() == nil && time.Until(r.At) <= 0 && f.quiet(ctx, f.ledger, r) {
		return json.RawMessage(hookcall.Done), nil
	}
	return json.RawMessage(hookcall.Runs), nil
}
