package messages

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/wire"
)

// version is the protocol version.
const version = "2023-06-01"

// maxPages is the maximum number of pages of the model list.
const maxPages = 20

// Provider is an endpoint with the Messages protocol. Its base address is without /v1.
type Provider struct{ wire.Endpoint }

// New returns a provider; the endpoint's Authorize sets x-api-key.
func New(e wire.Endpoint) *Provider {
	headers := map[string]string{"Anthropic-Version": version}
	maps.Copy(headers, e.Headers)
	e.Headers = headers
	return &Provider{e}
}

// Stream implements model.Provider.
func (p *Provider) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Answer, error) {
	self := model.Ref{Provider: p.Name, Model: r.Model}
	s, err := p.Post(ctx, "/v1/messages", encode(r, self))
	if err != nil {
		return model.Answer{}, err
	}
	defer s.Close()
	d := decoder{p: p, ids: wire.NewIDs(r.Messages), on: on}
	if s.Plain {
		whole, err := s.Whole()
		if err != nil {
			return model.Answer{}, err
		}
		if err := d.whole(whole); err != nil {
			return model.Answer{}, err
		}
		return d.answer(self)
	}
	for !d.ended {
		e, err := s.Next()
		if err != nil {
			return model.Answer{Usage: d.used()}, p.Ended(err, "message_stop")
		}
		if err := d.event(e); err != nil {
			return model.Answer{Usage: d.used()}, err
		}
	}
	return d.answer(self)
}

// Models implements model.Provider.
func (p *Provider) Models(ctx context.Context) ([]model.Info, error) {
	var out []model.Info
	path := "/v1/models?limit=1000"
	for range maxPages {
		body, err := p.Get(ctx, path)
		if err != nil {
			return nil, err
		}
		var page struct {
			Data []struct {
				ID        string `json:"id"`
				Context   int    `json:"max_input_tokens"`
				MaxOutput int    `json:"max_tokens"`
			} `json:"data"`
			More bool   `json:"has_more"`
			Last string `json:"last_id"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return nil, &model.Error{Kind: model.Refused, Provider: p.Name, Err: fmt.Errorf("read the list of models: %w", err)}
		}
		for _, m := range page.Data {
			out = append(out, model.Info{ID: m.ID, Context: m.Context, MaxOutput: m.MaxOutput})
		}
		if !page.More || page.Last == "" {
			break
		}
		path = "/v1/models?limit=1000&after_id=" + url.QueryEscape(page.Last)
	}
	return out, nil
}
