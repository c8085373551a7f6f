package config

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/messages"
	"github.com/teamctl/teamctl/agent/model/openai"
	"github.com/teamctl/teamctl/agent/model/script"
	"github.com/teamctl/teamctl/agent/model/wire"
)

// Open returns the provider of a model and what is known about the model, without a request.
func (c *Config) Open(ref model.Ref) (model.Provider, model.Info, error) {
	if ref.Provider == scriptName {
		return script.Provider{}, model.Info{ID: ref.Model, Price: &model.Price{}}, nil
	}
	p, err := c.provider(ref.Provider)
	if err != nil {
		return nil, model.Info{}, err
	}
	return c.open(ref.Provider, p), c.info(ref), nil
}

func (c *Config) open(name string, p Provider) model.Provider {
	e := wire.Endpoint{Name: name, BaseURL: p.BaseURL, Headers: p.Headers, Authorize: c.authorize(name, p)}
	var out model.Provider
	switch p.API {
	case apiMessages:
		out = messages.New(e)
	case apiResponses:
		out = &openai.Responses{Endpoint: e}
	default:
		out = &openai.Chat{Endpoint: e, OpenAI: name == "openai"}
	}
	if _, ok := known[name]; ok {
		return out
	}
	return &watched{Provider: out, name: name}
}

// Check reports why a model cannot be used: an unknown provider, no key. It runs no keyCommand and
// makes no request.
func (c *Config) Check(ctx context.Context, ref model.Ref) error {
	if ref.Provider == scriptName {
		return script.Check(ref.Model)
	}
	p, err := c.provider(ref.Provider)
	if err != nil || p.KeyCommand != "" {
		return err
	}
	_, err = c.key(ctx, ref.Provider, p)
	return err
}

// info combines the data of the file and of the provider's list; the file takes precedence.
func (c *Config) info(ref model.Ref) model.Info {
	out := model.Info{ID: ref.Model}
	for _, i := range c.listed(ref.Provider) {
		if i.ID == ref.Model {
			out = i
		}
	}
	return c.limits[ref].over(out)
}

func (l Limits) over(i model.Info) model.Info {
	if l.Context > 0 {
		i.Context = l.Context
	}
	if l.MaxOutput > 0 {
		i.MaxOutput = l.MaxOutput
	}
	if l.Price != nil {
		i.Price = l.Price
	}
	return i
}

// watched warns once about a server that drops the beginning of its input: local servers do so
// without an error when their context is smaller than the conversation.
type watched struct {
	model.Provider
	name string
	told sync.Once
}

// A server has dropped input if it counts less than half of the sent tokens, estimated with
// bytesPerToken; short requests prove nothing.
const (
	bytesPerToken = 4
	least         = 4096 // tokens
)

func (w *watched) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Answer, error) {
	a, err := w.Provider.Stream(ctx, r, on)
	sent := int64(size(r) / bytesPerToken)
	if in := a.Usage.InputTokens; err == nil && in > 0 && sent >= least && 2*in < sent {
		w.told.Do(func() {
			a.Notice = fmt.Sprintf("%s counted %d tokens of about %d that were sent: it leaves out the beginning of the conversation. "+
				"Give the server a larger context, and set providers.%s.models.%s.context in %s to it.", w.name, in, sent, w.name, r.Model, Name)
		})
	}
	return a, err
}

// size estimates the bytes of a request that a model reads.
func size(r model.Request) int {
	n := len(r.System) + len(r.Ephemeral)
	for _, t := range r.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			n += len(p.Text)
			if p.Call != nil {
				n += len(p.Call.Name) + len(p.Call.Input)
			}
			if p.Result != nil {
				n += len(p.Result.Text)
			}
		}
	}
	return n
}

// listFile returns the path of a provider's stored list.
func (c *Config) listFile(name string) string {
	return filepath.Join(c.dir, "cache", "models", name+".json")
}
