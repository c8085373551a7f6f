package tool

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// Usage is the team's usage of models, with its budgets and limits.
type Usage struct {
	Members []MemberUsage  `json:"members"`
	Team    MemberUsage    `json:"team"`
	Limited []LimitedAgent `json:"limited"`
	OnLimit string         `json:"on_limit"` // wait, resume
}

// MemberUsage is the usage of one member; all values are running totals over its conversations.
type MemberUsage struct {
	Name         string      `json:"name,omitempty"`
	Agent        string      `json:"agent,omitempty"`
	Counted      bool        `json:"counted"` // false: its CLI has reported nothing, so zero means unknown
	InputTokens  int64       `json:"input_tokens"`
	CachedTokens int64       `json:"cached_tokens"`
	OutputTokens int64       `json:"output_tokens"`
	Uncounted    int64       `json:"uncounted_requests,omitempty"` // not in the tokens, or in part: they ended before their answer
	CostUSD      float64     `json:"cost_usd"`
	CostKnown    bool        `json:"cost_known,omitempty"` // cost_usd is complete, even if it is zero
	Budget       team.Budget `json:"budget,omitzero"`
	Share        float64     `json:"share,omitempty"` // of the budget, 1 for all
	Held         string      `json:"held,omitempty"`  // why it gets no prompts now
}

// LimitedAgent is a provider at a usage limit.
type LimitedAgent struct {
	Agent string `json:"agent"`
	team.ProviderLimit
}

func usageOf(u team.Usage, b team.Budget) MemberUsage {
	return MemberUsage{
		InputTokens: u.InputTokens, CachedTokens: u.CachedTokens, OutputTokens: u.OutputTokens, CostUSD: u.CostUSD, CostKnown: u.CostKnown,
		Uncounted: u.Unknown, Budget: b, Share: b.Share(u),
	}
}

// nothingTold reports whether there were requests, of none of which the usage is known.
func nothingTold(u team.Usage) bool {
	return u.Unknown > 0 && u.InputTokens == 0 && u.OutputTokens == 0
}

// Usage returns the team's usage.
func (t *Team) Usage(ctx context.Context) (Usage, error) {
	out := Usage{Members: []MemberUsage{}, Limited: []LimitedAgent{}, OnLimit: "wait"}
	q, err := quota.Read(ctx, t.Ledger)
	if err != nil {
		return out, err
	}
	rows, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return out, err
	}
	now := time.Now()
	for _, r := range rows {
		used, counted := q.Used(r.SessionKey)
		if !counted && team.KindOf(r.Spec.Agent).NoModel {
			continue
		}
		m := usageOf(used, q.Budgets.Members[r.Name])
		m.Name, m.Agent = r.Name, r.Spec.Agent
		m.Counted = counted && !nothingTold(used)
		key, err := t.limitKey(ctx, r)
		if err != nil {
			return out, err
		}
		if no := q.BlocksAt(r, key, now); no != nil {
			m.Held = no.Error()
		}
		out.Members = append(out.Members, m)
	}
	out.Team = usageOf(q.Team(), q.Budgets.Team)
	out.Team.Counted = len(q.Spent)+len(q.Turns) > 0 && !nothingTold(q.Team())
	for _, a := range slices.Sorted(maps.Keys(q.Limited)) {
		out.Limited = append(out.Limited, LimitedAgent{a, q.Limited[a]})
	}
	if q.Budgets.Resume {
		out.OnLimit = "resume"
	}
	return out, nil
}

// SetBudgets replaces all budgets and the action at the end of a limit, as set in a team file.
func (t *Team) SetBudgets(ctx context.Context, c Caller, b team.Budgets) error {
	if err := t.may(ctx, c, OpSettings); err != nil {
		return err
	}
	return t.setBudgets(ctx, c, b, "")
}

// SetBudget sets the budget of a member, or of the team (""); an empty budget removes it. A budget
// in dollars is refused (CodeInvalid, bad_budget) if the price of a model that it covers is unknown.
func (t *Team) SetBudget(ctx context.Context, c Caller, name string, b team.Budget) error {
	if err := t.may(ctx, c, OpSettings); err != nil {
		return err
	}
	q, err := quota.Limits(ctx, t.Ledger)
	if err != nil {
		return err
	}
	added := team.Budgets{Team: b}
	if name == "" {
		q.Budgets.Team = b
	} else {
		if _, err := t.Ledger.Member(ctx, name); err != nil {
			return err
		}
		added = team.Budgets{Members: map[string]team.Budget{name: b}}
		all := maps.Clone(q.Budgets.Members)
		if all == nil {
			all = map[string]team.Budget{}
		}
		if all[name] = b; b.None() {
			delete(all, name)
		}
		q.Budgets.Members = all
	}
	if err := t.countAll(ctx, added, nil); err != nil {
		return err
	}
	return t.setBudgets(ctx, c, q.Budgets, name)
}

func (t *Team) setBudgets(ctx context.Context, c Caller, b team.Budgets, name string) error {
	if err := t.as(c).Set(ctx, quota.SettingBudgets, b); err != nil {
		return err
	}
	// The supervisor reconsiders held work.
	if _, err := t.as(c).Event(ctx, ledger.Event{What: team.EventUsageBudgetChanged, ID: name}); err != nil {
		return err
	}
	t.carryOn(ctx)
	return nil
}

// ResumeUsage ends the limit of a provider, also before its time, and makes the held members
// continue.
func (t *Team) ResumeUsage(ctx context.Context, c Caller, agent string) error {
	if err := t.may(ctx, c, OpSettings); err != nil {
		return err
	}
	err := quota.End(ctx, t.as(c), agent, nil)
	if err == nil {
		t.carryOn(ctx)
	}
	if !team.IsCode(err, team.CodeNotFound) {
		return err
	}
	q, qerr := quota.Limits(ctx, t.Ledger)
	if qerr != nil {
		return qerr
	}
	var have *team.Error
	if len(q.Limited) > 0 && errors.As(err, &have) {
		return have.WithHint("those that have: " + strings.Join(slices.Sorted(maps.Keys(q.Limited)), ", "))
	}
	return err
}

// limitKey returns the key of the usage limit that applies to a member: if its kind has several
// providers, that of its newest turn.
func (t *Team) limitKey(ctx context.Context, m ledger.Member) (string, error) {
	if !team.KindOf(m.Spec.Agent).Sessions {
		return m.Spec.Agent, nil
	}
	turn, ok, err := t.Ledger.NewestTurn(ctx, m.SessionKey)
	if err != nil || !ok {
		return m.Spec.Agent, err
	}
	var with struct {
		Provider string `json:"provider"`
	}
	_ = json.Unmarshal(turn.Effective, &with) // empty: it has not begun
	return team.LimitKey(m.Spec.Agent, with.Provider), nil
}
