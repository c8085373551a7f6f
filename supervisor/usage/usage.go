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

// rest is the minimum time between two writes of the usage, since some agents count after every
// request. A crossed bound of a budget is written at once.
const rest = 2 * time.Second

// kept is how many conversations of a member are written at each count; those before are one sum.
const kept = 4

// Turns controls the turns of agents and their deliveries. Package delivery implements it.
type Turns interface {
	// Break interrupts the turn of a member for a reason.
	Break(session, why string)
	// BreakOff returns a function that interrupts, beside the loop, a turn that waits for a limit.
	BreakOff(session string) func(ctx context.Context)
	// LimitEnded records when the last limit of a member's agent was ended.
	LimitEnded(session string, at time.Time)
	// Deliver delivers a member's waiting mail.
	Deliver(session string)
}

// Usage is the service.
type Usage struct {
	loop.Quiet
	team          loop.Team
	retry         func(session string) // ends a back-off
	turns         Turns
	spent         map[string]quota.Spent // by session key; nil before the first read
	conversations map[string]string      // last conversation of each member, by session key
}

// New returns the service, which Serve completes. retry ends the back-off of a member, since the
// cause of a failed start may be over.
func New(t loop.Team, retry func(session string)) *Usage {
	return &Usage{team: t, retry: retry, conversations: map[string]string{}}
}

// Serve sets the turns. It is called once, before Start.
func (u *Usage) Serve(turns Turns) { u.turns = turns }

// Ready ends expired limits, and completes the work of a killed supervisor for ended ones and for
// members that have left.
func (u *Usage) Ready() {
	u.foldLeft()
	u.limitsOver()
	u.goOnLeft()
}

// Event handles recorded and ended limits, and changed budgets.
func (u *Usage) Event(e ledger.Event) {
	switch e.What {
	case team.EventUsageResumed, team.EventUsageBudgetChanged:
		u.resumed(e)
	case team.EventUsageLimited: // written by an agent that reports its own activity
		u.limitsOver()
	}
}

// Looked follows the roster.
func (u *Usage) Looked(roster bool) {
	if roster {
		u.foldLeft()
	}
}

// Close writes pending counts.
func (u *Usage) Close() {
	if u.Bus.Armed(flushTimer) {
		u.write()
	}
}

// Ended returns when the last limit of an agent was ended; zero: never, or unknown.
func (u *Usage) Ended(agent string) time.Time {
	if q := u.limits(); q != nil {
		return q.Ended(agent)
	}
	return time.Time{}
}

// Counted records the usage in an observation of a member.
func (u *Usage) Counted(m loop.Member, o team.Observation) {
	if o.Conversation != "" {
		u.conversations[m.SessionKey] = o.Conversation
	}
	if o.Usage != nil {
		u.used(m, *o.Usage)
	}
}

// used records an agent's count of its conversation. Most counts repeat the one before, and the
// loop waits for them: nothing is read for those.
func (u *Usage) used(m loop.Member, count team.Usage) {
	if !u.load() {
		return
	}
	key := m.SessionKey
	conversation := u.conversations[key]
	before := u.spent[key]
	old, again := before.Conversations[conversation]
	if again && old == count {
		return
	}
	q := u.budgets()
	if q == nil {
		return
	}
	now := quota.Spent{Name: m.Name, Agent: m.Spec.Agent, Conversations: maps.Clone(before.Conversations)}
	if now.Conversations == nil {
		now.Conversations = map[string]team.Usage{}
	}
	now.Conversations[conversation] = count
	now.Earlier = before.Earlier
	if len(now.Conversations) > kept || !again && now.Earlier != (team.Usage{}) {
		if err := u.fold(m.SessionKey, &now, conversation); err != nil {
			u.team.Log.Warn("fold earlier conversations", "member", m.Name, "err", err)
			return
		}
	}
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

// fold makes a sum of the earlier conversations of a member that begins another one or goes back to
// one. What is in both settings is counted once, so a kill between their writes changes nothing.
func (u *Usage) fold(session string, s *quota.Spent, current string) error {
	ctx, cancel := loop.Writing(context.Background())
	defer cancel()
	past, err := quota.Past(ctx, u.team.Ledger, session)
	if err != nil {
		return err
	}
	if len(s.Conversations) > kept {
		maps.Copy(past.Conversations, s.Conversations)
		past.Name, past.Agent = s.Name, s.Agent
		if err := u.team.Ledger.Set(ctx, quota.SettingPast(session), past); err != nil {
			return err
		}
		s.Conversations = map[string]team.Usage{current: s.Conversations[current]}
	}
	for name := range s.Conversations {
		delete(past.Conversations, name)
	}
	s.Earlier = past.Total()
	return nil
}

// foldLeft adds up the members that have left: nothing is counted for them any more.
func (u *Usage) foldLeft() {
	if !u.load() {
		return
	}
	some := false
	for session, s := range u.spent {
		if _, here := u.Bus.Look(session); here || session == quota.Left {
			continue
		}
		left, err := u.leave(session, s)
		if err != nil {
			u.team.Log.Warn("fold what a member has used that left", "member", s.Name, "err", err)
		}
		some = some || left
	}
	if some {
		u.write()
	}
}

// leave adds a member to the sum of those that have left, if it has.
func (u *Usage) leave(session string, s quota.Spent) (left bool, err error) {
	ctx, cancel := loop.Writing(context.Background())
	defer cancel()
	m, err := u.team.Ledger.MemberBySession(ctx, session)
	if err == nil && m.RemovedAt == 0 {
		return false, nil
	}
	if err != nil && !team.IsCode(err, team.CodeNotFound) { // a rebuilt ledger may have lost its row
		return false, err
	}
	past, err := quota.Past(ctx, u.team.Ledger, session)
	if err != nil {
		return false, err
	}
	maps.Copy(past.Conversations, s.Conversations)
	past.Name, past.Agent = s.Name, s.Agent
	if err := u.team.Ledger.Set(ctx, quota.SettingPast(session), past); err != nil {
		return false, err
	}
	all := u.spent[quota.Left]
	all.Earlier.Add(s.Total())
	u.spent[quota.Left] = all
	delete(u.spent, session)
	delete(u.conversations, session)
	return true, nil
}

// load reads, once, the usage from before this supervisor. Afterwards memory has what the ledger
// has, since nobody else writes it.
func (u *Usage) load() bool {
	if u.spent != nil {
		return true
	}
	ctx, cancel := loop.Writing(context.Background())
	defer cancel()
	spent, err := quota.Counts(ctx, u.team.Ledger)
	if err != nil {
		u.team.Log.Warn("read what was used", "err", err)
		return false
	}
	if spent == nil {
		spent = map[string]quota.Spent{}
	}
	u.spent = spent
	return true
}

// limits reads the budgets and limits, without what was used; nil if that fails.
func (u *Usage) limits() *quota.Quota {
	ctx, cancel := loop.Writing(context.Background())
	defer cancel()
	q, err := quota.Limits(ctx, u.team.Ledger)
	if err != nil {
		u.team.Log.Warn("read budgets", "err", err)
		return nil
	}
	return &q
}

// budgets is limits with the usage of turns, where a budget of the team counts it.
func (u *Usage) budgets() *quota.Quota {
	q := u.limits()
	if q == nil || q.Budgets.Team.None() {
		return q
	}
	ctx, cancel := loop.Writing(context.Background())
	defer cancel()
	var err error
	if q.Turns, err = u.team.Ledger.TurnUsage(ctx); err != nil {
		u.team.Log.Warn("read what turns have used", "err", err)
		return nil
	}
	return q
}

// flushTimer is the timer for writing collected counts.
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

// crossed reports a crossed bound, and at the end of a budget interrupts the turns of the affected
// members. who is "" for the team.
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

// shown formats a share.
func shown(share float64) string { return fmt.Sprintf("%d%%", int(share*100)) }
