package program

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/config"
	"github.com/teamctl/teamctl/agent/secrets"
	"github.com/teamctl/teamctl/team"
)

// learn registers the secrets of the configuration, the environment and MCP servers, before
// anything that could repeat them is sent or run. The key printed by a command is known once a
// model was used with it.
func (p *Program) learn(cfg *config.Config, servers map[string]team.MCPServer) {
	cfg.Secrets(p.secrets.Add)
	config.SecretsOf(servers, p.secrets.Add)
	keys := append(cfg.KeyVariables(), team.EnvToken)
	for _, kv := range p.Env.Environ {
		name, value, _ := strings.Cut(kv, "=")
		if secret := config.IsSecretName(name) && !strings.HasPrefix(value, "/"); secret || slices.Contains(keys, name) {
			p.secrets.Add(name, value) // a path is not a key
		}
	}
}

// hiding is a provider whose answers and errors contain no secrets: its text goes to the
// transcript, the screen and mail.
type hiding struct {
	model.Provider
	secrets  *secrets.Set
	answered func() // called after each answer; may be nil
}

// Stream implements model.Provider.
func (h hiding) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Answer, error) {
	a, err := h.Provider.Stream(ctx, r, on) // the screen hides secrets in streamed text
	if err == nil && h.answered != nil {
		h.answered()
	}
	var e *model.Error
	if errors.As(err, &e) {
		text := e.Text
		if text == "" && e.Err != nil {
			text = e.Err.Error()
		}
		if hidden := h.secrets.Hide(text); hidden != text {
			clean := *e
			clean.Text, clean.Err = hidden, nil
			err = &clean
		}
	}
	a.Message = hideMessage(h.secrets, a.Message)
	a.Notice = h.secrets.Hide(a.Notice)
	return a, err
}

// hideMessage replaces the secrets in an answer. The provider's own bytes cannot be changed, since
// parts of them are signed: an answer with a secret is sent back without them, like an answer of
// another model.
func hideMessage(s *secrets.Set, m model.Message) model.Message {
	if hideJSON(s, m.Raw) != string(m.Raw) {
		m.Raw = nil
	}
	for i, p := range m.Parts {
		text := s.Hide(p.Text)
		if text != p.Text {
			m.Parts[i].Text, m.Raw = text, nil
		}
		if p.Call == nil {
			continue
		}
		if input := hideJSON(s, p.Call.Input); input != string(p.Call.Input) {
			c := *p.Call
			c.Input = json.RawMessage(input)
			m.Parts[i].Call, m.Raw = &c, nil
		}
	}
	return m
}

// hideJSON replaces the secrets in the strings of a JSON value. Without a secret, the bytes stay
// unchanged.
func hideJSON(s *secrets.Set, raw json.RawMessage) string {
	text := s.Hide(string(raw))
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	if hideValue(s, &v) { // it was written with escapes
		if b, err := json.Marshal(v); err == nil {
			return string(b)
		}
	}
	return text
}

func hideValue(s *secrets.Set, v *any) (changed bool) {
	switch is := (*v).(type) {
	case string:
		hidden := s.Hide(is)
		*v, changed = hidden, hidden != is
	case []any:
		for i := range is {
			changed = hideValue(s, &is[i]) || changed
		}
	case map[string]any:
		for k, e := range is {
			if hideValue(s, &e) {
				is[k], changed = e, true
			}
		}
	}
	return changed
}
