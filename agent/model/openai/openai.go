package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/wire"
)

// models lists an endpoint's models. Compatible servers return more data than OpenAI, under names
// of their own.
func models(ctx context.Context, e wire.Endpoint) ([]model.Info, error) {
	body, err := e.Get(ctx, "/models")
	if err != nil {
		return nil, err
	}
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			Context int    `json:"context_length"` // OpenRouter
			Window  int    `json:"context_window"` // Groq
			MaxLen  int    `json:"max_model_len"`  // vLLM
			Meta    struct {
				Train int `json:"n_ctx_train"` // llama.cpp: the model's limit
				Ctx   int `json:"n_ctx"`       // the server's limit
			} `json:"meta"`
			Top struct {
				MaxOutput int `json:"max_completion_tokens"`
			} `json:"top_provider"`
			Pricing *struct {
				Prompt     json.Number `json:"prompt"`
				Completion json.Number `json:"completion"`
				Read       json.Number `json:"input_cache_read"`
				Write      json.Number `json:"input_cache_write"`
			} `json:"pricing"` // OpenRouter: dollars per token, as strings
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, &model.Error{Kind: model.Refused, Provider: e.Name, Err: fmt.Errorf("read the list of models: %w", err)}
	}
	var out []model.Info
	for _, m := range list.Data {
		i := model.Info{ID: m.ID, Context: cmp.Or(m.Meta.Ctx, m.Context, m.Window, m.MaxLen), MaxOutput: m.Top.MaxOutput}
		if p := m.Pricing; p != nil {
			in, err1 := p.Prompt.Float64()
			outPrice, err2 := p.Completion.Float64()
			if err1 == nil && err2 == nil && in >= 0 && outPrice >= 0 { // -1: varies
				read, _ := p.Read.Float64()
				write, _ := p.Write.Float64()
				i.Price = &model.Price{
					Input: in * 1e6, Output: outPrice * 1e6,
					CacheRead: cmp.Or(read, in) * 1e6, CacheWrite: cmp.Or(write, in) * 1e6,
				}
			}
		}
		out = append(out, i)
	}
	return out, nil
}

// arguments encodes the input of a call as a string, as both protocols require.
func arguments(c *model.Call) json.RawMessage {
	switch {
	case len(c.Input) == 0:
		return wire.Quote("{}")
	case wire.IsString(c.Input): // not JSON: sent back unchanged
		return c.Input
	}
	return wire.Quote(string(c.Input))
}

// parameters is a tool in the form of both protocols.
type parameters struct {
	Type        string          `json:"type,omitempty"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict,omitempty"`
}
