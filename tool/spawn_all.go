package tool

import (
	"context"
	"sync"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// SpawnAll spawns the members of a whole team: all of them are on the roster before the first is
// started. No member therefore acts in an incomplete team: no task is done before its reviewer is
// known, and no mail is refused because its recipient is missing. If some fail, the others stay;
// the slice says which, in order.
func (t *Team) SpawnAll(ctx context.Context, c Caller, list []SpawnIn) ([]Spawned, error) {
	var asked []team.SpawnRequest
	var alone []bool // one of several has no own name that could be replaced
	for _, in := range list {
		approval, err := t.maySpawn(ctx, c, in)
		if err != nil {
			return nil, err
		}
		if approval {
			return nil, team.Errorf(team.CodeDenied, "a caller that needs approval for each member cannot spawn a whole team").WithReason(team.ReasonDelegation)
		}
		one, err := t.spawnIn(ctx, c, in)
		if err != nil {
			return nil, err
		}
		n, err := many(in)
		if err != nil {
			return nil, err
		}
		for range n {
			asked, alone = append(asked, one), append(alone, n == 1)
		}
	}
	if _, err := t.supervisor(ctx); err != nil {
		return nil, err
	}
	held := make([]ledger.SpawnResult, len(asked))
	for i, one := range asked {
		one.Hold = true
		var err error
		held[i], err = supervise(ctx, t, func(s Supervisor) (ledger.SpawnResult, error) { return s.Spawn(ctx, one) })
		if err != nil {
			return nil, err
		}
	}
	out, errs := make([]Spawned, len(asked)), make([]error, len(asked))
	var wg sync.WaitGroup
	for i, one := range asked {
		wg.Go(func() {
			name := held[i].Member.Name
			res, err := supervise(ctx, t, func(s Supervisor) (ledger.SpawnResult, error) {
				return s.Spawn(ctx, team.SpawnRequest{Name: name, Held: true})
			})
			res.Renamed = held[i].Renamed && alone[i]
			out[i], errs[i] = t.spawned(res, one), err
			switch {
			case err != nil:
				out[i] = Spawned{Status: "failed", Name: name, TeamName: t.Layout.Key, Error: err.Error()}
			case res.Renamed:
				out[i].Warnings = append(out[i].Warnings, t.taken(ctx, one.Name))
			}
		})
	}
	wg.Wait()
	return out, joinErrors(errs)
}

// many returns the number of requested members.
func many(in SpawnIn) (int, error) {
	n := max(in.Count, 1)
	if in.Count < 0 || n > maxCount {
		return 0, team.Errorf(team.CodeInvalid, "cannot spawn %d members at once", in.Count).WithHint("1 to 200")
	}
	if n > 1 && in.Exact {
		return 0, team.Errorf(team.CodeInvalid, "an exact name fits one member, not %d", n)
	}
	return n, nil
}
