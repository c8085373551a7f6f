package program

import (
	"context"
	"fmt"
	"time"

	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// account gives the agent access to the team's usage and limits.
type account struct{ *Program }

// Blocked implements agent.Quota. When a provider's limit may be over, one session probes it.
func (q account) Blocked(ctx context.Context, session string) (why error, until time.Time, err error) {
	m, err := q.Team.Ledger.MemberBySession(ctx, q.id.Session)
	if err != nil {
		return nil, until, err
	}
	is, err := quota.Bounds(ctx, q.Team.Ledger)
	if err != nil {
		return nil, until, err
	}
	if err := is.TellAll(ctx, q.Team.Ledger, m); err != nil {
		return nil, until, err
	}
	key, now := q.limitKey(q.providerOf(session)), time.Now()
	limit, limited := is.Limited[key]
	if no := is.BlocksAt(m, key, now); no != nil {
		if limit.Until > now.UnixMilli() {
			until = time.UnixMilli(limit.Until)
		}
		return no, until, nil
	}
	if !limited {
		return nil, until, nil
	}
	mine, err := quota.Probe(ctx, q.Team.Ledger, key)
	if err == nil && !mine { // the ledger has by now until when the other one may take
		why = team.Errorf(team.CodeLimit, "another session tries whether the usage limit of %s is over", key).WithReason(team.ReasonProviderLimited)
		until = now
	}
	return why, until, err
}

// Reached implements agent.Quota.
func (q account) Reached(ctx context.Context, at time.Time, limit *team.LimitReached) error {
	_, _, err := quota.Note(ctx, q.Team.Ledger, q.limitKey(limit.Provider), q.Member.Name, at, limit.Until, []string{limit.Words})
	return err
}

// Used implements agent.Quota. The ledger has the usage of the turns; Used reports budgets that
// are nearly used up.
func (q account) Used(ctx context.Context, _ team.Usage) bool {
	m, err := q.Team.Ledger.MemberBySession(ctx, q.id.Session)
	if err != nil {
		return false
	}
	is, err := quota.Bounds(ctx, q.Team.Ledger)
	return err == nil && is.TellAll(ctx, q.Team.Ledger, m) == nil
}

func (p *Program) limitKey(provider string) string {
	return team.LimitKey(team.AgentLLM, provider)
}

// providerOf returns the provider of a session's current turn.
func (p *Program) providerOf(session string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.providers[session]
}

// asksAt records the provider of a session's current turn.
func (p *Program) asksAt(session, provider string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.providers[session] = provider
}

// answered ends the limit of a provider that has answered.
func (p *Program) answered(ctx context.Context, provider string) {
	key := p.limitKey(provider)
	limits := map[string]team.ProviderLimit{}
	if _, err := p.Team.Ledger.Setting(ctx, quota.SettingLimited, &limits); err != nil || limits[key].Since == 0 || limits[key].Ended != 0 {
		return
	}
	err := quota.End(ctx, p.Team.Ledger, key, func(l team.ProviderLimit) bool { return l.Until != 0 })
	if err != nil && !team.IsCode(err, team.CodeNotFound) && p.Env.Out != nil {
		_, _ = fmt.Fprintf(p.Env.Out, "the end of the usage limit is not noted: %v\n", err)
	}
}
