package team

import (
	"fmt"
	"strings"
)

// AgentSpec says what an agent of the built-in kind is capable of: its model, its
// instructions, its tools and skills, what it is reminded of. The names are those of
// the team's agent_specs, of agent.toml and of the team file.
type AgentSpec struct {
	ID          string        `json:"agent_id" toml:"agent_id" yaml:"agent_id"`
	Name        string        `json:"name" toml:"name" yaml:"name"` // unique, regardless of case
	Description string        `json:"description,omitempty" toml:"description,omitempty" yaml:"description,omitempty"`
	Defaults    SpecDefaults  `json:"defaults,omitzero" toml:"defaults,omitempty" yaml:"defaults,omitempty"`
	Policy      SpecPolicy    `json:"policy,omitzero" toml:"policy,omitempty" yaml:"policy,omitempty"`
	Context     ContextPolicy `json:"context_policy,omitzero" toml:"context_policy,omitempty" yaml:"context_policy,omitempty"`
	Workspace   SpecWorkspace `json:"workspace,omitzero" toml:"workspace,omitempty" yaml:"workspace,omitempty"`
}

// SpecDefaults are what a session of the spec begins with.
type SpecDefaults struct {
	Model        SpecModel `json:"model,omitzero" toml:"model,omitempty" yaml:"model,omitempty"`
	SystemPrompt string    `json:"system_prompt,omitempty" toml:"system_prompt,omitempty" yaml:"system_prompt,omitempty"`
}

// SpecModel is a model and how it is asked.
type SpecModel struct {
	Provider        string   `json:"provider,omitempty" toml:"provider,omitempty" yaml:"provider,omitempty"`
	Model           string   `json:"model,omitempty" toml:"model,omitempty" yaml:"model,omitempty"`
	Temperature     *float64 `json:"temperature,omitempty" toml:"temperature,omitempty" yaml:"temperature,omitempty"` // 0 to 2
	Effort          string   `json:"effort,omitempty" toml:"effort,omitempty" yaml:"effort,omitempty"`                // in the provider's words
	MaxOutputTokens int      `json:"max_output_tokens,omitempty" toml:"max_output_tokens,omitempty" yaml:"max_output_tokens,omitempty"`
}

// SpecPolicy bounds what a session may use.
type SpecPolicy struct {
	Tools  Filter `json:"tools,omitzero" toml:"tools,omitempty" yaml:"tools,omitempty"`
	Skills Filter `json:"skills,omitzero" toml:"skills,omitempty" yaml:"skills,omitempty"`
}

// Filter allows names. A nil list filters nothing; an empty Allow allows nothing; Deny
// wins. * in a pattern is any text.
type Filter struct {
	Allow []string `json:"allow,omitzero" toml:"allow,omitempty" yaml:"allow,omitempty"`
	Deny  []string `json:"deny,omitzero" toml:"deny,omitempty" yaml:"deny,omitempty"`
}

// ContextPolicy says what a session is reminded of at each request.
type ContextPolicy struct {
	Memory       *bool    `json:"memory,omitempty" toml:"memory,omitempty" yaml:"memory,omitempty"`                      // nil: on, and off for child sessions
	MemoryBudget int      `json:"memory_budget,omitempty" toml:"memory_budget,omitempty" yaml:"memory_budget,omitempty"` // tokens; 0 for DefaultMemoryBudget
	MemoryFilter []string `json:"memory_filter,omitzero" toml:"memory_filter,omitempty" yaml:"memory_filter,omitempty"`  // patterns of keys; nil for all
}

// DefaultMemoryBudget is how many tokens of memory a request has at most.
const DefaultMemoryBudget = 500

// SpecWorkspace is where the spec's own texts are.
type SpecWorkspace struct {
	Overlay string `json:"overlay,omitempty" toml:"overlay,omitempty" yaml:"overlay,omitempty"` // a directory below workspace/agents/ID
}

// Allows reports whether the filter lets name pass.
func (f Filter) Allows(name string) bool {
	for _, p := range f.Deny {
		if wild(p, name) {
			return false
		}
	}
	return f.Allow == nil || f.Names(name)
}

// Names reports whether Allow has a pattern of name.
func (f Filter) Names(name string) bool {
	for _, p := range f.Allow {
		if wild(p, name) {
			return true
		}
	}
	return false
}

// wild matches a pattern in which * is any text, the empty one included.
func wild(pattern, name string) bool {
	first, rest, some := strings.Cut(pattern, "*")
	if !some {
		return pattern == name
	}
	if !strings.HasPrefix(name, first) {
		return false
	}
	name = name[len(first):]
	for {
		part, more, some := strings.Cut(rest, "*")
		if !some {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], more
	}
}

func specID(s string) bool { return spelled(s, 64, lower+digits, "_-") }

// Validate checks a spec. Errors are CodeInvalid and name the field.
func (s AgentSpec) Validate() error {
	bad := func(field, format string, args ...any) error {
		err := Errorf(CodeInvalid, "agent %q: %s: %s", s.ID, field, fmt.Sprintf(format, args...)).WithReason(ReasonBadSpec)
		if field == "agent_id" {
			err = err.WithHint("use at most 64 lower case letters, digits, _ and -, and not the name of an agent kind")
		}
		return err
	}
	switch {
	case !specID(s.ID):
		return bad("agent_id", "not a valid id")
	case s.ID == string(SessionMain):
		return bad("agent_id", "reserved")
	case IsAgentKind(s.ID):
		return bad("agent_id", "the name of a kind of agent")
	case strings.TrimSpace(s.Name) == "":
		return bad("name", "missing")
	case s.Name != strings.TrimSpace(s.Name) || strings.ContainsFunc(s.Name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return bad("name", "blanks around it, or control characters")
	}
	m := s.Defaults.Model
	switch {
	case (m.Provider == "") != (m.Model == ""):
		return bad("defaults.model", "provider and model go together")
	case m.Temperature != nil && (*m.Temperature < 0 || *m.Temperature > 2):
		return bad("defaults.model.temperature", "%v, want 0 to 2", *m.Temperature)
	case m.MaxOutputTokens < 0:
		return bad("defaults.model.max_output_tokens", "%d, want 0 or more", m.MaxOutputTokens)
	case s.Context.MemoryBudget < 0:
		return bad("context_policy.memory_budget", "%d, want 0 or more", s.Context.MemoryBudget)
	}
	for field, list := range map[string][]string{
		"policy.tools.allow": s.Policy.Tools.Allow, "policy.tools.deny": s.Policy.Tools.Deny,
		"policy.skills.allow": s.Policy.Skills.Allow, "policy.skills.deny": s.Policy.Skills.Deny,
		"context_policy.memory_filter": s.Context.MemoryFilter,
	} {
		for _, p := range list {
			if strings.TrimSpace(p) == "" {
				return bad(field, "empty pattern")
			}
		}
	}
	if o := s.Workspace.Overlay; o != "" && (strings.HasPrefix(o, "/") || strings.Contains("/"+o+"/", "/../")) {
		return bad("workspace.overlay", "%q leads out of the workspace", o)
	}
	return nil
}
