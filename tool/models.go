package tool

import (
	"context"

	"github.com/teamctl/teamctl/team"
)

// ProviderModels are the models of one provider.
type ProviderModels struct {
	Provider string      `json:"provider"`
	Models   []ModelInfo `json:"models"`
	AskedAt  int64       `json:"asked_at,omitempty" jsonschema:"When the provider was asked, Unix milliseconds; not there where it was not."`
	Problem  string      `json:"problem,omitempty" jsonschema:"Why the provider could not be asked."`
}

// ModelInfo is what is known of a model; what nobody has said is not there.
type ModelInfo struct {
	Ref       string      `json:"ref" jsonschema:"provider/model, as session_set_model takes it."`
	Context   int         `json:"context,omitempty" jsonschema:"Tokens that a request may have."`
	MaxOutput int         `json:"max_output,omitempty"`
	Price     *ModelPrice `json:"price,omitempty" jsonschema:"Dollars for a million tokens."`
}

// ModelPrice is in dollars for a million tokens.
type ModelPrice struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// ModelsIn says which models to list.
type ModelsIn struct {
	Provider string
	Refresh  bool // ask the provider, however new its list is
}

// Models lists the models that can be asked: what providers say of themselves, which is
// kept for a day, and what is configured.
func (t *Team) Models(ctx context.Context, in ModelsIn) ([]ProviderModels, error) {
	if t.Env.Models == nil {
		return nil, team.Errorf(team.CodeUnavailable, "this program knows no models").WithReason(team.ReasonNotAvailable)
	}
	return t.Env.Models(ctx, in.Provider, in.Refresh)
}

// TurnRounds is how many answers a turn may have.
func (t *Team) TurnRounds(ctx context.Context) (int, error) {
	return t.settingInt(ctx, SetTurnRounds, team.MaxTurnRounds)
}
