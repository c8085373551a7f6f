package acp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// tellAgain is how long the supervisor has to write down what it was told.
const tellAgain = 5 * time.Second

// account is what the team says of usage and limits to an agent that takes its mail itself.
type account struct {
	*Program
	told time.Time
	last team.Usage // that was told
}

// Blocked is agent.Quota.
func (q *account) Blocked(ctx context.Context, _ string) (why, err error) {
	return quota.Blocked(ctx, q.Team.Ledger, q.Caller.Session)
}

// Reached is agent.Quota.
func (q *account) Reached(ctx context.Context, at time.Time, limit *team.LimitReached) error {
	_, _, err := quota.Note(ctx, q.Team.Ledger, q.Member.Spec.Agent, q.Member.Name, at, limit.Until, []string{limit.Words})
	return err
}

// Used is agent.Quota. The supervisor keeps the account of all members: it is told, and
// the next one where it was killed before it had written.
func (q *account) Used(ctx context.Context, u team.Usage) (noted bool) {
	gen := q.getenv(team.EnvGen)
	now, err := quota.Read(ctx, q.Team.Ledger)
	if err != nil {
		return false
	}
	if was, ok := now.Spent[q.Caller.Session].Conversations[gen]; ok && was == u {
		return true
	}
	if u == q.last && time.Since(q.told) < tellAgain {
		return false
	}
	q.last, q.told = u, time.Now()
	data, err := json.Marshal(team.Observation{At: time.Now(), Source: "the agent's own count", Conversation: gen, Usage: &u})
	if err == nil { // nobody may be there
		_ = bundle.Send(q.getenv(team.EnvNotify), bundle.Event{Agent: q.Member.Name, Generation: gen, Event: bundle.EventSeen, Data: data})
	}
	return false
}
