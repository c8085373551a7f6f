package program

import (
	"context"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/config"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Models returns the function that lists models for the team's operations.
func Models(home team.Home) func(context.Context, string, bool) ([]tool.ProviderModels, error) {
	return func(ctx context.Context, provider string, refresh bool) ([]tool.ProviderModels, error) {
		cfg, err := config.Load(home)
		if err != nil {
			return nil, err
		}
		list, err := cfg.List(ctx, provider, refresh)
		if err != nil {
			return nil, err
		}
		out := make([]tool.ProviderModels, len(list))
		for i, l := range list {
			out[i] = tool.ProviderModels{Provider: l.Provider, AskedAt: l.At, Models: make([]tool.ModelInfo, len(l.Models))}
			if l.Err != nil {
				out[i].Problem = l.Err.Error()
			}
			for j, m := range l.Models {
				out[i].Models[j] = tool.ModelInfo{Ref: model.Ref{Provider: l.Provider, Model: m.ID}.String(), Context: m.Context, MaxOutput: m.MaxOutput}
				if p := m.Price; p != nil {
					out[i].Models[j].Price = &tool.ModelPrice{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
				}
			}
		}
		return out, nil
	}
}
