package config

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/internal/atomicfile"
)

const (
	listAge  = 24 * time.Hour // after which a list is requested again
	listTime = 20 * time.Second
)

// list is a stored answer of a provider. It applies to one address only.
type list struct {
	BaseURL string       `json:"baseURL"`
	At      int64        `json:"at"` // Unix milliseconds
	Models  []model.Info `json:"models"`
}

// Listed has the models of one provider.
type Listed struct {
	Provider string       `json:"provider"`
	Models   []model.Info `json:"models"`       // sorted by id
	At       int64        `json:"at,omitempty"` // when the provider answered, Unix milliseconds; 0: only from the file
	Err      error        `json:"-"`            // why the request failed
}

// List lists models: of one provider, or with an empty name of the script model and of every
// provider that the file or the default names. A provider is asked if refresh is set or its list
// is a day old; if that fails, the known models are listed, with the error.
func (c *Config) List(ctx context.Context, provider string, refresh bool) ([]Listed, error) {
	names := []string{provider}
	if provider == "" {
		names = []string{scriptName}
		for _, name := range c.Providers() {
			if c.written[name] || name == c.Default.Provider {
				names = append(names, name)
			}
		}
	}
	var out []Listed
	for _, name := range names {
		l, err := c.listOf(ctx, name, refresh)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

func (c *Config) listOf(ctx context.Context, name string, refresh bool) (Listed, error) {
	if name == scriptName {
		return Listed{Provider: name, Models: []model.Info{{ID: scriptDemo, Price: &model.Price{}}}}, nil
	}
	p, err := c.provider(name)
	if err != nil {
		return Listed{}, err
	}
	kept := c.kept(name)
	out := Listed{Provider: name}
	if refresh || time.Since(time.UnixMilli(kept.At)) > listAge {
		asking, cancel := context.WithTimeout(ctx, listTime)
		defer cancel()
		models, err := c.open(name, p).Models(asking)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if out.Err = err; err == nil {
			kept = list{BaseURL: p.BaseURL, At: time.Now().UnixMilli(), Models: models}
			c.keep(name, kept)
		}
	}
	out.At = kept.At
	known := map[string]bool{}
	for _, i := range kept.Models {
		known[i.ID] = true
		out.Models = append(out.Models, c.limits[model.Ref{Provider: name, Model: i.ID}].over(i))
	}
	for ref, l := range c.limits {
		if ref.Provider == name && !known[ref.Model] {
			out.Models = append(out.Models, l.over(model.Info{ID: ref.Model}))
		}
	}
	slices.SortFunc(out.Models, func(a, b model.Info) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// kept returns the stored list for the current address.
func (c *Config) kept(name string) (l list) {
	b, err := os.ReadFile(c.listFile(name))
	if err != nil || json.Unmarshal(b, &l) != nil || l.BaseURL != c.providers[name].BaseURL {
		return list{}
	}
	return l
}

func (c *Config) listed(name string) []model.Info { return c.kept(name).Models }

// keep stores a list; if that fails, the next call requests it again.
func (c *Config) keep(name string, l list) {
	b, err := json.Marshal(l)
	if err != nil || os.MkdirAll(filepath.Dir(c.listFile(name)), 0o700) != nil {
		return
	}
	_ = atomicfile.Write(c.listFile(name), b, 0o600, false)
}
