package tool

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// modelRef returns provider/model of the model that a session asks: its override, else its spec's,
// else the team's; "" for the default of config.yaml.
func (t *Team) modelRef(ctx context.Context, provider, model string, spec team.AgentSpec) (string, error) {
	if ref := ownRef(provider, model, spec); ref != "" {
		return ref, nil
	}
	return t.Model(ctx)
}

// ownRef is modelRef without the team's model.
func ownRef(provider, model string, spec team.AgentSpec) string {
	if model == "" {
		provider, model = spec.Defaults.Model.Provider, spec.Defaults.Model.Model
	}
	if model == "" {
		return ""
	}
	return provider + "/" + model
}

// countable refuses a model that nobody has given a price, if one of the budgets is in dollars: it
// would never be reached. who asks the model.
func (e *Env) countable(ctx context.Context, who, ref string, budgets ...team.Budget) error {
	if e.Price == nil || !slices.ContainsFunc(budgets, func(b team.Budget) bool { return b.CostUSD > 0 }) {
		return nil
	}
	ref, known, err := e.Price(ctx, ref)
	if err != nil || known {
		return err
	}
	return quota.Priceless(who, ref)
}

// checkPrices refuses a model of a member if a budget of the member or of the team cannot count it.
func (t *Team) checkPrices(ctx context.Context, name, ref string) error {
	if t.Env.Price == nil {
		return nil
	}
	q, err := quota.Limits(ctx, t.Ledger)
	if err != nil {
		return err
	}
	return t.Env.countable(ctx, name, ref, q.Budgets.Team, q.Budgets.Members[name])
}

// checkSession is checkPrices for the model of a session with an override and a spec; the member of
// a session may be gone.
func (t *Team) checkSession(ctx context.Context, s ledger.Session, provider, model string, spec team.AgentSpec) error {
	if t.Env.Price == nil {
		return nil
	}
	ref, err := t.modelRef(ctx, provider, model, spec)
	if err != nil {
		return err
	}
	m, err := t.Ledger.MemberBySession(ctx, s.Member)
	if team.IsCode(err, team.CodeNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return t.checkPrices(ctx, m.Name, ref)
}

// countAll refuses budgets that cannot count the model of an open session. except has the members
// whose models are about to change.
func (t *Team) countAll(ctx context.Context, b team.Budgets, except map[string]bool) error {
	if t.Env.Price == nil {
		return nil
	}
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return err
	}
	for _, m := range members {
		own := b.Members[m.Name]
		if except[m.Name] || !team.KindOf(m.Spec.Agent).Sessions || own.CostUSD <= 0 && b.Team.CostUSD <= 0 {
			continue
		}
		open, err := t.Ledger.Sessions(ctx, ledger.SessionFilter{Member: m.SessionKey})
		if err != nil {
			return err
		}
		if len(open) == 0 { // it has not started yet
			provider, model, _ := strings.Cut(m.Spec.Model, "/")
			open = []ledger.Session{{ActiveAgentID: cmp.Or(m.Spec.AgentType, "default"), ProviderOverride: provider, ModelOverride: model}}
		}
		for _, s := range open {
			spec, err := t.Ledger.Spec(ctx, s.ActiveAgentID)
			if err != nil && !team.IsCode(err, team.CodeNotFound) {
				return err
			}
			ref, err := t.modelRef(ctx, s.ProviderOverride, s.ModelOverride, spec.AgentSpec)
			if err == nil {
				err = t.Env.countable(ctx, m.Name, ref, own, b.Team)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// checkUsers refuses a new default model of a spec that a budget of those who use it cannot count.
func (t *Team) checkUsers(ctx context.Context, spec team.AgentSpec) error {
	if t.Env.Price == nil {
		return nil
	}
	open, err := t.Ledger.Sessions(ctx, ledger.SessionFilter{})
	for _, s := range open {
		if err == nil && s.ActiveAgentID == spec.ID && s.ModelOverride == "" {
			err = t.checkSession(ctx, s, "", "", spec)
		}
	}
	return err
}

// prices refuses budgets in dollars of the file that cannot count the models of its members,
// before anything is done.
func (u *upper) prices(ctx context.Context) error {
	if u.env.Price == nil {
		return nil
	}
	var own []team.AgentSpec
	if u.env.OwnSpecs != nil {
		own, _ = u.env.OwnSpecs() // doctor reports broken ones
	}
	own = append(slices.Clone(u.f.Agents), own...)
	for _, m := range u.f.Members {
		agent := m.Agent
		if agent == "" && len(m.Command) == 0 && strings.Contains(m.Model, "/") {
			agent = team.AgentLLM
		}
		if !team.KindOf(agent).Sessions {
			continue
		}
		var spec team.AgentSpec
		if i := slices.IndexFunc(own, func(s team.AgentSpec) bool { return s.ID == m.AgentType || s.Name == m.AgentType }); i >= 0 {
			spec = own[i]
		}
		provider, model, _ := strings.Cut(m.Model, "/")
		if err := u.env.countable(ctx, m.Name, cmp.Or(ownRef(provider, model, spec), u.f.Model), m.Budget, u.f.Budget); err != nil {
			return err
		}
	}
	return nil
}
