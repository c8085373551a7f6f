package program

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
)

// quota is what the team says of the member's usage.
type quota struct{ *Program }

// Blocked is agent.Quota.
func (q quota) Blocked(ctx context.Context) (why, err error) {
	return supervisor.Blocked(ctx, q.Team.Ledger, q.id.Session)
}

// Reached is agent.Quota.
func (q quota) Reached(ctx context.Context, at time.Time, limit *team.LimitReached) error {
	_, _, err := supervisor.NoteLimit(ctx, q.Team.Ledger, q.Member.Spec.Agent, q.Member.Name, at, limit.Until, []string{limit.Words})
	return err
}

// Used is agent.Quota. The turns have their usage in the ledger.
func (q quota) Used(context.Context, team.Usage) bool { return true }
