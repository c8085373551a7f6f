// Package quota decides who may use a model now: it has the budgets of a team, the usage of its
// members, and the limits of providers that they have reached. All of it is stored in settings of
// the ledger, which any process can read.
package quota

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Settings of usage and its limits.
const (
	SettingBudgets = "budgets" // Budgets
	SettingUsage   = "usage"   // map[session key, Left for all that have left]Spent
	// SettingLimited has the last limit of each agent, also an ended one: its text may stay on a
	// screen for long and no longer counts. Several processes write it, only by Note and End.
	SettingLimited = "limited"      // map[team.LimitKey]ProviderLimit
	SettingTold    = "budgets-told" // map[member, "" for the team]told: the reported bounds
)

// WarnAt is the share of a budget at which a warning is reported.
const WarnAt = 0.8

// Left is the key of SettingUsage whose Earlier is the sum of the members that have left.
const Left = ""

// Spent is the usage of one member, by conversation: a CLI counts each from zero. SettingUsage has
// the last conversations; those before are a sum there, and each of them is in SettingPast, since a
// person may go back to one, which then counts on.
type Spent struct {
	Name          string                `json:"name"`
	Agent         string                `json:"agent"`
	Conversations map[string]team.Usage `json:"conversations"`
	Earlier       team.Usage            `json:"earlier,omitzero"` // the sum of those that are not in Conversations
}

// SettingPast is the setting (a Spent) with the earlier conversations of a member, and with all of
// a member that has left. It is read only for a member that begins another conversation or has left.
func SettingPast(session string) string { return "usage " + session }

// Past reads SettingPast; it is empty for a member of which SettingUsage has everything.
func Past(ctx context.Context, l *ledger.Ledger, session string) (s Spent, err error) {
	_, err = l.Setting(ctx, SettingPast(session), &s)
	if s.Conversations == nil {
		s.Conversations = map[string]team.Usage{}
	}
	return s, err
}

// Total returns the sum.
func (s Spent) Total() (u team.Usage) {
	u = s.Earlier
	for _, c := range s.Conversations {
		u.Add(c)
	}
	return u
}

// Quota is the state of budgets, usage and limits.
type Quota struct {
	Budgets team.Budgets
	Spent   map[string]Spent              // by session key
	Turns   map[string]team.Usage         // of members of the built-in kind, by session key: the sum of their turns
	Limited map[string]team.ProviderLimit // by team.LimitKey: those in force
	Over    map[string]team.ProviderLimit // by team.LimitKey: the last one, if it was ended
}

// Ended returns when the last limit of an agent was ended; zero for never.
func (q Quota) Ended(agent string) time.Time {
	if l, ok := q.Over[agent]; ok {
		return time.UnixMilli(l.Ended)
	}
	return time.Time{}
}

// Read reads the quota from the ledger, with all that the members have used. Whoever asks only
// what blocks a member calls Bounds, and whoever asks for budgets and limits calls Limits.
func Read(ctx context.Context, l *ledger.Ledger) (q Quota, err error) {
	if q, err = Limits(ctx, l); err == nil {
		err = q.readUsage(ctx, l)
	}
	return q, err
}

// Bounds is Read for those who only ask what blocks a member: where no budget is set it leaves out
// what the members have used, which nothing then depends on.
func Bounds(ctx context.Context, l *ledger.Ledger) (q Quota, err error) {
	if q, err = Limits(ctx, l); err == nil && (!q.Budgets.Team.None() || len(q.Budgets.Members) > 0) {
		err = q.readUsage(ctx, l)
	}
	return q, err
}

// readUsage reads what the members have used.
func (q *Quota) readUsage(ctx context.Context, l *ledger.Ledger) (err error) {
	if q.Spent, err = Counts(ctx, l); err == nil {
		q.Turns, err = l.TurnUsage(ctx)
	}
	return err
}

// Counts reads the usage that agents have reported, by session key.
func Counts(ctx context.Context, l *ledger.Ledger) (spent map[string]Spent, err error) {
	_, err = l.Setting(ctx, SettingUsage, &spent)
	return spent, err
}

// Limits reads the budgets and the limits, without what the members have used.
func Limits(ctx context.Context, l *ledger.Ledger) (q Quota, err error) {
	var all map[string]team.ProviderLimit
	for name, v := range map[string]any{SettingBudgets: &q.Budgets, SettingLimited: &all} {
		if _, err := l.Setting(ctx, name, v); err != nil {
			return Quota{}, err
		}
	}
	q.Limited, q.Over = map[string]team.ProviderLimit{}, map[string]team.ProviderLimit{}
	for agent, l := range all {
		if l.Ended == 0 {
			q.Limited[agent] = l
		} else {
			q.Over[agent] = l
		}
	}
	return q, nil
}

// Used returns the usage of a member; counted is false if it is unknown.
func (q Quota) Used(session string) (u team.Usage, counted bool) {
	s, counted := q.Spent[session]
	u = s.Total()
	if t, ok := q.Turns[session]; ok {
		u.Add(t)
		counted = true
	}
	return u, counted
}

// UsedBy is Used for a member that may have left.
func (q Quota) UsedBy(ctx context.Context, l *ledger.Ledger, row ledger.Member) (u team.Usage, counted bool, err error) {
	if _, there := q.Spent[row.SessionKey]; row.RemovedAt != 0 && !there {
		past, err := Past(ctx, l, row.SessionKey)
		if err != nil {
			return u, false, err
		}
		if len(past.Conversations) > 0 {
			q.Spent = map[string]Spent{row.SessionKey: past}
		}
	}
	u, counted = q.Used(row.SessionKey)
	return u, counted, nil
}

// Team returns the usage of all members together, including former ones.
func (q Quota) Team() (u team.Usage) {
	for _, s := range q.Spent {
		u.Add(s.Total())
	}
	for _, t := range q.Turns {
		u.Add(t)
	}
	return u
}

// Blocks returns why a member gets no prompts and is not started now: CodeLimit with
// team.ReasonProviderLimited or team.ReasonBudgetUsedUp. Nil means not blocked.
func (q Quota) Blocks(row ledger.Member, now time.Time) *team.Error {
	return q.BlocksAt(row, row.Spec.Agent, now)
}

// BlocksAt is Blocks for a member that uses a limit's key; see team.LimitKey.
func (q Quota) BlocksAt(row ledger.Member, key string, now time.Time) *team.Error {
	if l, ok := q.Limited[key]; ok {
		until := time.UnixMilli(l.Until)
		switch {
		case l.Until == 0:
			return team.Errorf(team.CodeLimit, "%s has reached a usage limit, and has not said until when", key).
				WithReason(team.ReasonProviderLimited).WithHint("teamctl usage resume " + key)
		case now.Before(until):
			return team.Errorf(team.CodeLimit, "%s has reached a usage limit until %s", key, until.Local().Format("Mon 15:04")).
				WithReason(team.ReasonProviderLimited).WithHint("wait, or teamctl usage resume " + key)
		case !q.Budgets.Resume && key == row.Spec.Agent:
			return team.Errorf(team.CodeLimit, "%s had reached a usage limit until %s", key, until.Local().Format("Mon 15:04")).
				WithReason(team.ReasonProviderLimited).WithHint("teamctl usage resume " + key)
		}
	}
	used, counted := q.Used(row.SessionKey)
	if share := q.Budgets.Members[row.Name].Share(used); share >= 1 {
		return team.Errorf(team.CodeLimit, "the budget of %s is used up", row.Name).
			WithReason(team.ReasonBudgetUsedUp).WithHint("teamctl usage budget " + row.Name + " --tokens N")
	}
	if q.Budgets.Team.Share(q.Team()) >= 1 && (counted || !team.KindOf(row.Spec.Agent).NoModel) {
		return team.Errorf(team.CodeLimit, "the budget of the team is used up").
			WithReason(team.ReasonBudgetUsedUp).WithHint("teamctl usage budget --tokens N")
	}
	return nil
}

// Uncounted returns why a member must not ask a model whose price is unknown: a budget in dollars
// covers it. Nil means that none does.
func (q Quota) Uncounted(name, model string) *team.Error {
	if q.Budgets.Team.CostUSD <= 0 && q.Budgets.Members[name].CostUSD <= 0 {
		return nil
	}
	return Priceless(name, model)
}

// Priceless is the refusal of a budget in dollars for a model whose price is unknown, which it
// would never reach: CodeInvalid, bad_budget.
func Priceless(name, model string) *team.Error {
	return team.Errorf(team.CodeInvalid, "a budget in dollars cannot count what %s uses: the price of %s is unknown", name, model).
		WithReason(team.ReasonBadBudget).
		WithHint("set the price of \"" + model + "\" below models in config.yaml, or bound tokens or turns: teamctl usage budget " + name + " --tokens N")
}

// Blocked returns why the model of the member with a session key must not be asked now; nil if it
// may.
func Blocked(ctx context.Context, l *ledger.Ledger, session string) (why, err error) {
	m, err := l.MemberBySession(ctx, session)
	if err != nil {
		return nil, err
	}
	q, err := Bounds(ctx, l)
	if err != nil {
		return nil, err
	}
	if no := q.Blocks(m, time.Now()); no != nil {
		return no, nil
	}
	return nil, nil
}
