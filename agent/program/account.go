package program

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// account is what the team says of the member's usage.
type account struct{ *Program }

// Blocked is agent.Quota.
func (q account) Blocked(ctx context.Context) (why, err error) {
	return quota.Blocked(ctx, q.Team.Ledger, q.id.Session)
}

// Reached is agent.Quota.
func (q account) Reached(ctx context.Context, at time.Time, limit *team.LimitReached) error {
	_, _, err := quota.Note(ctx, q.Team.Ledger, q.Member.Spec.Agent, q.Member.Name, at, limit.Until, []string{limit.Words})
	return err
}

// Used is agent.Quota. The turns have their usage in the ledger.
func (q account) Used(context.Context, team.Usage) bool { return true }
