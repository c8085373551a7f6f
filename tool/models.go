package tool

import (
	"context"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// ProviderModels lists the models of one provider.
type ProviderModels struct {
	Provider string      `json:"provider"`
	Models   []ModelInfo `json:"models"`
	AskedAt  int64       `json:"asked_at,omitempty" jsonschema:"When the provider was asked, Unix milliseconds; not there where it was not."`
	Problem  string      `json:"problem,omitempty" jsonschema:"Why the provider could not be asked."`
}

// ModelInfo describes a model; unknown fields are omitted.
type ModelInfo struct {
	Ref       string      `json:"ref" jsonschema:"provider/model, as session_set_model takes it."`
	Context   int         `json:"context,omitempty" jsonschema:"Tokens that a request may have."`
	MaxOutput int         `json:"max_output,omitempty"`
	Price     *ModelPrice `json:"price,omitempty" jsonschema:"Dollars for a million tokens."`
}

// ModelPrice is in dollars per million tokens.
type ModelPrice struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// ModelsIn selects the models to list.
type ModelsIn struct {
	Provider string
	Refresh  bool // ask the provider even if the stored list is recent
}

// Models lists the available models: those reported by providers, which are stored for a day, and
// those configured.
func (t *Team) Models(ctx context.Context, in ModelsIn) ([]ProviderModels, error) {
	if t.Env.Models == nil {
		return nil, team.Errorf(team.CodeUnavailable, "this program knows no models").WithReason(team.ReasonNotAvailable)
	}
	return t.Env.Models(ctx, in.Provider, in.Refresh)
}

// Model returns provider/model of the model of sessions that have none of their own and none from
// their spec; "" for the default of config.yaml.
func (t *Team) Model(ctx context.Context) (string, error) { return t.setting(ctx, SetModel) }

// checkTeamModel refuses a model of the team that cannot be asked, or that a budget of those who
// would use it cannot count; "" is the default of config.yaml.
func (t *Team) checkTeamModel(ctx context.Context, ref string) error {
	if ref != "" && t.Env.CheckModel != nil {
		if _, err := t.Env.CheckModel(ctx, ref); err != nil {
			return err
		}
	}
	if t.Env.Price == nil {
		return nil
	}
	open, err := t.Ledger.Sessions(ctx, ledger.SessionFilter{})
	if err != nil {
		return err
	}
	for _, s := range open {
		spec, err := t.Ledger.Spec(ctx, s.ActiveAgentID)
		if err != nil && !team.IsCode(err, team.CodeNotFound) {
			return err
		}
		if own := ownRef(s.ProviderOverride, s.ModelOverride, spec.AgentSpec); own != "" {
			continue
		}
		m, err := t.Ledger.MemberBySession(ctx, s.Member)
		if err == nil {
			err = t.checkPrices(ctx, m.Name, ref)
		}
		if err != nil && !team.IsCode(err, team.CodeNotFound) { // a member that is gone
			return err
		}
	}
	return nil
}

// TurnRounds returns the maximum number of answers in a turn.
func (t *Team) TurnRounds(ctx context.Context) (int, error) {
	return t.settingInt(ctx, SetTurnRounds, team.MaxTurnRounds)
}
