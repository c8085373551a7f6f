package usage

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// rest is the least time between two writes of what was used: some agents
// count after every request. What crosses a bound of a budget is written at once.
const rest = 2 * time.Second

// Turns are the turns of agents, and what is delivered to them. Package delivery implements it.
type Turns interface {
	// Break ends the turn that a member is in, because of why.
	Break(session, why string)
	// BreakOff returns what ends, beside the loop, a turn that would go on by itself.
	BreakOff(session string) func(ctx context.Context)
	// LimitEnded takes in when the last limit of a member's agent was ended.
	LimitEnded(session string, at time.Time)
	// Deliver hands over what waits for a member.
	Deliver(session string)
}

// Usage is the service.
type Usage struct {
	loop.Quiet
	team          loop.Team
	retry         func(session string) // ends a back-off
	turns         Turns
	spent         map[string]quota.Spent // by session key; nil before the first look
	conversations map[string]string      // the last that each member was seen in, by session key
}

// New returns the service, which Serve completes. retry ends the back-off of a member: what kept it
// from starting may be over.
func New(t loop.Team, retry func(session string)) *Usage {
	return &Usage{team: t, retry: retry, conversations: map[string]string{}}
}

// Serve says whose turns these are. It is called once, before Start.
func (u *Usage) Serve(turns Turns) { u.turns = turns }

// Ready ends the limits whose time has come, and does what a killed supervisor had still to do for
// those that were ended.
func (u *Usage) Ready() {
	u.limitsOver()
	u.goOnLeft()
}

// Event takes in limits that were noted and ended, and budgets that were changed.
func (u *Usage) Event(e ledger.Event) {
	switch e.What {
	case team.EventUsageResumed, team.EventUsageBudgetChanged:
		u.resumed(e)
	case team.EventUsageLimited: // an agent that says itself what it does has written it
		u.limitsOver()
	}
}

// Close writes what is not written yet.
func (u *Usage) Close() {
	if u.Bus.Armed(flushTimer) {
		u.write()
	}
}

// Ended is when the last limit of an agent was ended; zero: never, or not known.
func (u *Usage) Ended(agent string) time.Time {
	if q := u.read(); q != nil {
		return q.Ended(agent)
	}
	return time.Time{}
}

// Counted takes what an observation of a member says of what was used.
func (u *Usage) Counted(m loop.Member, o team.Observation) {
	if o.Conversation != "" {
		u.conversations[m.SessionKey] = o.Conversation
	}
	if o.Usage != nil {
		u.used(m, *o.Usage)
	}
}

// used takes what an agent has counted in its conversation.
func (u *Usage) used(m loop.Member, count team.Usage) {
	q := u.read()
	if q == nil {
		return
	}
	key := m.SessionKey
	conversation := u.conversations[key]
	before := u.spent[key]
	if old, ok := before.Conversations[conversation]; ok && old == count {
		return
	}
	now := quota.Spent{Name: m.Name, Agent: m.Spec.Agent, Conversations: maps.Clone(before.Conversations)}
	if now.Conversations == nil {
		now.Conversations = map[string]team.Usage{}
	}
	now.Conversations[conversation] = count
	q.Spent = u.spent
	all := q.Team()
	u.spent[key] = now
	own := q.Budgets.Members[m.Name]
	crossed := u.crossed(m.Name, own, before.Total(), now.Total(), []loop.Member{m})
	if u.crossed("", q.Budgets.Team, all, q.Team(), u.Bus.Members()) || crossed {
		u.write()
	} else if !u.Bus.Armed(flushTimer) {
		u.Bus.After(flushTimer, rest, u.write)
	}
}

// read reads the budgets, and once what was used before this supervisor.
func (u *Usage) read() *quota.Quota {
	ctx, cancel := loop.Writing(context.Background())
	defer cancel()
	q, err := quota.Read(ctx, u.team.Ledger)
	if err != nil {
		u.team.Log.Warn("read budgets", "err", err)
		return nil
	}
	if u.spent == nil {
		u.spent = q.Spent
	}
	if u.spent == nil {
		u.spent = map[string]quota.Spent{}
	}
	return &q
}

// flushTimer writes what has come together.
const flushTimer = "usage"

func (u *Usage) write() {
	u.Bus.After(flushTimer, 0, nil)
	ctx, cancel := loop.Writing(context.Background())
	defer cancel()
	if err := u.team.Ledger.Set(ctx, quota.SettingUsage, u.spent); err != nil {
		u.team.Log.Warn("write what was used", "err", err)
		u.Bus.After(flushTimer, rest, u.write)
	}
}

// crossed tells of a bound that was crossed, and at the end of a budget breaks off
// the turns of those it holds for. who is "" for the team.
func (u *Usage) crossed(who string, b team.Budget, before, after team.Usage, ms []loop.Member) bool {
	was, is := b.Share(before), b.Share(after)
	what := ""
	switch {
	case was < 1 && is >= 1:
		what = team.EventUsageBudgetUsedUp
	case was < quota.WarnAt && is >= quota.WarnAt:
		what = team.EventUsageBudgetWarned
	default:
		return false
	}
	u.team.Log.Warn("budget", "member", who, "used", shown(is), "event", what)
	ctx, cancel := loop.Writing(context.Background())
	defer cancel()
	if _, err := quota.Tell(ctx, u.team.Ledger, who, b, after); err != nil {
		u.team.Log.Warn("tell of a budget", "member", who, "err", err)
	}
	if what != team.EventUsageBudgetUsedUp {
		return true
	}
	for _, m := range ms {
		if !team.KindOf(m.Spec.Agent).NoModel {
			u.turns.Break(m.SessionKey, "the budget is used up")
		}
	}
	return true
}

// shown is a share as people read it.
func shown(share float64) string { return fmt.Sprintf("%d%%", int(share*100)) }
