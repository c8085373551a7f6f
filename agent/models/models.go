// Package models answers the team's operations what models there are, and whether one can
// be asked: as config.yaml of the home directory says, and the providers themselves.
package models

import (
	"context"
	"strings"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/config"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// List returns what lists models for the team's operations.
func List(home team.Home) func(context.Context, string, bool) ([]tool.ProviderModels, error) {
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

// Check returns what reports why a model cannot be asked, or what is to be known of
// the default one where nobody has chosen it.
func Check(home team.Home) func(context.Context, string) (string, error) {
	return func(ctx context.Context, s string) (note string, err error) {
		cfg, err := config.Load(home)
		if err != nil {
			return "", err
		}
		if s == "" {
			if !cfg.Chosen {
				note = "its model is a script that needs no key (" + cfg.Default.String() + "): --model PROVIDER/MODEL, or model in config.yaml, sets another"
				if unused := cfg.Unused(); len(unused) > 0 {
					note += "; there is a key for " + strings.Join(unused, ", ")
				}
			}
			return note, nil
		}
		ref, err := model.ParseRef(s)
		if err != nil {
			return "", err
		}
		return "", cfg.Check(ctx, ref)
	}
}

// Price returns what reports whether the price of a model is known: by config.yaml, or by the
// provider's list.
func Price(home team.Home) func(context.Context, string) (string, bool, error) {
	return func(_ context.Context, s string) (name string, known bool, err error) {
		cfg, err := config.Load(home)
		if err != nil {
			return s, false, err
		}
		ref := cfg.Default
		if s != "" {
			if ref, err = model.ParseRef(s); err != nil {
				return s, false, err
			}
		}
		_, info, err := cfg.Open(ref)
		return ref.String(), info.Price != nil, err
	}
}
