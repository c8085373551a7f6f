package config

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/internal/private"
	"github.com/teamctl/teamctl/team"
)

// Name is the file in $TEAMCTL_HOME.
const Name = "config.yaml"

// maxFile is its maximum size.
const maxFile = 1 << 20

// File is config.yaml.
type File struct {
	Model     string                    `yaml:"model"` // the default model of agents
	Providers map[string]Provider       `yaml:"providers"`
	Models    map[string]Limits         `yaml:"models"` // by provider/model
	MCP       map[string]team.MCPServer `yaml:"mcp"`    // used by built-in agents
	Hooks     any                       `yaml:"hooks"`  // package hooks reads them
}

// Provider says how a provider is reached. For known providers, missing fields have defaults.
type Provider struct {
	API        string            `yaml:"api"` // messages, responses or chat
	BaseURL    string            `yaml:"baseURL"`
	KeyEnv     string            `yaml:"keyEnv"`
	KeyFile    string            `yaml:"keyFile"`
	KeyCommand string            `yaml:"keyCommand"` // for sh -c; it prints the key
	Headers    map[string]string `yaml:"headers"`
	Models     map[string]Limits `yaml:"models"`
}

// Limits are the file's data about a model; zero is unknown.
type Limits struct {
	Context   int          `yaml:"context"`
	MaxOutput int          `yaml:"maxOutput"`
	Price     *model.Price `yaml:"price"`
}

// Config is the file with all defaults filled in. It does not change after Secrets.
type Config struct {
	Default model.Ref // script/demo if the file names none
	Chosen  bool      // the file names Default
	MCP     map[string]team.MCPServer

	found     func(name, value string) // called with each key that is read; may be nil
	dir       string                   // $TEAMCTL_HOME
	providers map[string]Provider
	limits    map[model.Ref]Limits
	written   map[string]bool // providers in the file
}

// Load reads config.yaml in the home directory; a missing file counts as empty. Errors are
// CodeInvalid (bad_config), with line and column for mistakes in the file, and CodeDenied
// (not_private) if others can write to it.
func Load(home team.Home) (*Config, error) {
	file := filepath.Join(home.Dir, Name)
	data, err := private.ReadFile(file) // it may name commands
	var refusal *private.Refusal
	switch {
	case errors.As(err, &refusal):
		return nil, team.Errorf(team.CodeDenied, "read models: %w", err).WithReason(team.ReasonNotPrivate).WithHint(team.ShellLine(refusal.Mend))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, bad(file, "%w", err)
	case len(data) > maxFile:
		return nil, bad(file, "more than %d bytes", maxFile)
	}
	return Parse(home.Dir, file, data)
}

func bad(file, format string, args ...any) error {
	return team.Errorf(team.CodeInvalid, "read "+strings.ReplaceAll(file, "%", "%%")+": "+format, args...).WithReason(team.ReasonBadConfig)
}

// Parse parses the text of the file.
func Parse(home, file string, data []byte) (*Config, error) {
	var f File
	if strings.TrimSpace(string(data)) != "" {
		if err := yaml.UnmarshalWithOptions(data, &f, yaml.Strict()); err != nil {
			line, _, _ := strings.Cut(yaml.FormatError(err, false, false), "\n")
			return nil, bad(file, "%s", line)
		}
	}
	c := &Config{
		dir: home, MCP: f.MCP, providers: map[string]Provider{}, limits: map[model.Ref]Limits{}, written: map[string]bool{},
		Default: model.Ref{Provider: scriptName, Model: scriptDemo},
	}
	for name, k := range known {
		c.providers[name] = k.filled(Provider{})
	}
	for name, p := range f.Providers {
		if name == scriptName || !goodName(name) {
			return nil, bad(file, "a provider cannot be called %q", name)
		}
		p = known[name].filled(p)
		if err := p.check(); err != nil {
			return nil, bad(file, "provider %s: %w", name, err)
		}
		c.providers[name], c.written[name] = p, true
		for id, l := range p.Models {
			if err := l.check(); err != nil {
				return nil, bad(file, "model %s of provider %s: %w", id, name, err)
			}
			c.limits[model.Ref{Provider: name, Model: id}] = l
		}
	}
	for s, l := range f.Models {
		ref, err := model.ParseRef(s)
		if err != nil {
			return nil, bad(file, "models: %w", err)
		}
		if err := l.check(); err != nil {
			return nil, bad(file, "model %s: %w", s, err)
		}
		if _, err := c.provider(ref.Provider); err != nil {
			return nil, bad(file, "models: %w", err)
		}
		c.limits[ref] = l
	}
	for name, s := range f.MCP {
		if err := s.Validate(name); err != nil {
			return nil, bad(file, "%w", err)
		}
	}
	if f.Model != "" {
		ref, err := model.ParseRef(f.Model)
		if err != nil {
			return nil, bad(file, "model: %w", err)
		}
		if ref.Provider != scriptName {
			if _, err := c.provider(ref.Provider); err != nil {
				return nil, bad(file, "model: %w", err)
			}
		}
		c.Default, c.Chosen = ref, true
	}
	return c, nil
}

func (l Limits) check() error {
	if l.Context < 0 || l.MaxOutput < 0 {
		return errors.New("context and maxOutput are not negative")
	}
	if p := l.Price; p != nil && (p.Input < 0 || p.Output < 0 || p.CacheRead < 0 || p.CacheWrite < 0) {
		return errors.New("prices are not negative")
	}
	return nil
}

func goodName(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return false
		}
	}
	return s != "" && len(s) <= 32
}
