package acp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// tellAgain is how long the supervisor may take to record reported usage before it is reported
// again.
const tellAgain = 5 * time.Second

// account gives agent.Talk access to the team's usage and limits, for an agent that fetches its
// own mail.
type account struct {
	*Program
	told time.Time
	last team.Usage // last reported
}

// Blocked implements agent.Quota. Every end of a limit is written to the ledger, by a person or by the
// supervisor.
func (q *account) Blocked(ctx context.Context, _ string) (why error, until time.Time, err error) {
	why, err = quota.Blocked(ctx, q.Team.Ledger, q.Caller.Session)
	return why, until, err
}

// Reached implements agent.Quota.
func (q *account) Reached(ctx context.Context, at time.Time, limit *team.LimitReached) error {
	_, _, err := quota.Note(ctx, q.Team.Ledger, q.Member.Spec.Agent, q.Member.Name, at, limit.Until, []string{limit.Words})
	return err
}

// Used implements agent.Quota. It reports to the supervisor, which records the usage of all
// members, and reports again until the ledger has it: a supervisor may be killed before it has
// written.
func (q *account) Used(ctx context.Context, u team.Usage) (noted bool) {
	gen := q.getenv(team.EnvGen)
	now, err := quota.Counts(ctx, q.Team.Ledger)
	if err != nil {
		return false
	}
	if was, ok := now[q.Caller.Session].Conversations[gen]; ok && was == u {
		return true
	}
	if u == q.last && time.Since(q.told) < tellAgain {
		return false
	}
	q.last, q.told = u, time.Now()
	data, err := json.Marshal(team.Observation{At: time.Now(), Source: "the agent's own count", Conversation: gen, Usage: &u})
	if err == nil { // the supervisor may be down
		_ = bundle.Send(q.getenv(team.EnvNotify), bundle.Event{Agent: q.Member.Name, Generation: gen, Event: bundle.EventSeen, Data: data})
	}
	return false
}
