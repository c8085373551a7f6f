package supervisor

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Approved is the intent (see [ledger.Intent]) of an approval that permits spawning members.
type Approved struct {
	Spawn team.SpawnRequest `json:"spawn"`
	Count int               `json:"count"`
}

// CarryOut carries out the action of an approval, unless that was done before, and returns its
// outcome: it happens once, whoever requests it and however often. ctx bounds only the wait. An
// approval without an intent is CodeNotFound.
func (s *Supervisor) CarryOut(ctx context.Context, approval int64) (ledger.Outcome, error) {
	return ask(ctx, s, func(reply func(ledger.Outcome, error)) { s.intents.CarryOut(approval, reply) })
}

// spawnApproved spawns the missing members of an approval. A spawn cut short by the end of the
// supervisor is ErrStopped, and stays open.
func (s *Supervisor) spawnApproved(ctx context.Context, approval int64, what json.RawMessage) (names []string, err error) {
	var do Approved
	if err := json.Unmarshal(what, &do); err != nil {
		return nil, team.Errorf(team.CodeInvalid, "read what was approved: %w", err)
	}
	n := max(do.Count, 1)
	outs, errs := make([]ledger.SpawnResult, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		in := do.Spawn
		in.Spec.Approval, in.Spec.Nth = approval, i
		wg.Go(func() { outs[i], errs[i] = s.Spawn(ctx, in) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, ErrStopped
	}
	for i, out := range outs {
		if errs[i] == nil {
			names = append(names, out.Member.Name)
		}
	}
	return names, oneOf(errs)
}
