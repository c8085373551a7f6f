package quota

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Note opens the breaker of an agent: a member has reached a limit that was first seen at since.
// It does nothing if that limit was ended already. It returns the limits in force; opened reports
// that this one is new and that its event was written.
func Note(ctx context.Context, l *ledger.Ledger, agent, member string, since, until time.Time, evidence []string) (all map[string]team.ProviderLimit, opened bool, err error) {
	err = ledger.Revise(ctx, l, SettingLimited, func(limits *map[string]team.ProviderLimit) (*ledger.Event, bool, error) {
		if *limits == nil {
			*limits = map[string]team.ProviderLimit{}
		}
		all, opened = *limits, false
		was, known := all[agent]
		if known && was.Ended != 0 {
			if !since.After(time.UnixMilli(was.Ended)) { // it is a limit that was ended
				return nil, false, nil
			}
			known = false
		}
		now := was
		if !known {
			now, opened = team.ProviderLimit{Since: time.Now().UnixMilli(), Evidence: evidence}, true
		}
		if !until.IsZero() {
			now.Until = max(now.Until, until.UnixMilli())
		}
		if slices.Contains(now.Members, member) {
			if now.Until == was.Until && !opened {
				return nil, false, nil
			}
		} else {
			now.Members = append(slices.Clone(now.Members), member)
		}
		all[agent] = now
		if !opened {
			return nil, true, nil
		}
		e, err := limitEvent(team.EventUsageLimited, agent, now)
		return e, true, err
	})
	maps.DeleteFunc(all, func(_ string, l team.ProviderLimit) bool { return l.Ended != 0 })
	return all, opened, err
}

// End closes the breaker of an agent, and the same write makes the supervisor continue with held
// work. due selects the limits to end; nil means all. CodeNotFound if no limit is in force.
func End(ctx context.Context, l *ledger.Ledger, agent string, due func(team.ProviderLimit) bool) error {
	return ledger.Revise(ctx, l, SettingLimited, func(limits *map[string]team.ProviderLimit) (*ledger.Event, bool, error) {
		is, ok := (*limits)[agent]
		if !ok || is.Ended != 0 {
			return nil, false, team.Errorf(team.CodeNotFound, "%s has reached no usage limit", agent).WithReason(team.ReasonNotLimited)
		}
		if due != nil && !due(is) {
			return nil, false, nil
		}
		is.Ended = time.Now().UnixMilli()
		(*limits)[agent] = is
		e, err := limitEvent(team.EventUsageResumed, agent, is)
		return e, true, err
	})
}

func limitEvent(what, agent string, l team.ProviderLimit) (*ledger.Event, error) {
	data, err := json.Marshal(l)
	return &ledger.Event{What: what, ID: agent, Data: data}, err
}

// probeTime is how long one session alone may probe whether a limit is over.
const probeTime = 2 * time.Minute

// Probe reports whether the caller probes whether the limit of a key is over: the limit's end has
// come, and no other session is probing. Other sessions stay blocked for two more minutes. The
// caller ends the limit when its request is answered.
func Probe(ctx context.Context, l *ledger.Ledger, key string) (mine bool, err error) {
	err = ledger.Revise(ctx, l, SettingLimited, func(limits *map[string]team.ProviderLimit) (*ledger.Event, bool, error) {
		is, ok := (*limits)[key]
		now := time.Now()
		if mine = ok && is.Ended == 0 && is.Until != 0 && now.UnixMilli() >= is.Until; !mine {
			return nil, false, nil
		}
		is.Until = now.Add(probeTime).UnixMilli()
		(*limits)[key] = is
		return nil, true, nil
	})
	return mine, err
}

// told is a bound of a budget that was reported.
type told struct {
	Budget team.Budget `json:"budget"`
	What   string      `json:"what"` // the event
}

// Tell reports once that usage has crossed a bound of a budget. It returns the event that it
// wrote, "" for none. who is "" for the team. Any process may call it at any time; a changed
// budget is reported again.
func Tell(ctx context.Context, l *ledger.Ledger, who string, b team.Budget, u team.Usage) (what string, err error) {
	share := b.Share(u)
	crossed := ""
	switch {
	case share >= 1:
		crossed = team.EventUsageBudgetUsedUp
	case share >= WarnAt:
		crossed = team.EventUsageBudgetWarned
	default:
		return "", nil
	}
	err = ledger.Revise(ctx, l, SettingTold, func(all *map[string]told) (*ledger.Event, bool, error) {
		what = ""
		was := (*all)[who]
		if was.Budget == b && (was.What == crossed || was.What == team.EventUsageBudgetUsedUp) {
			return nil, false, nil
		}
		if *all == nil {
			*all = map[string]told{}
		}
		(*all)[who] = told{b, crossed}
		what = crossed
		data, err := json.Marshal(map[string]any{"share": share, "tokens": u.Tokens(), "costUsd": u.CostUSD})
		return &ledger.Event{What: crossed, ID: who, Data: data}, true, err
	})
	return what, err
}

// TellAll calls Tell for the team's budget and a member's.
func (q Quota) TellAll(ctx context.Context, l *ledger.Ledger, row ledger.Member) error {
	used, _ := q.Used(row.SessionKey)
	_, err := Tell(ctx, l, row.Name, q.Budgets.Members[row.Name], used)
	if err == nil {
		_, err = Tell(ctx, l, "", q.Budgets.Team, q.Team())
	}
	return err
}
