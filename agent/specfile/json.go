package specfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// old is a spec in the format of subagent_specs lists.
type old struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	Provider     string          `json:"provider"`
	Model        string          `json:"model"`
	Temperature  *float64        `json:"temperature"`
	SystemPrompt string          `json:"system_prompt"`
	Prompt       string          `json:"prompt"`
	Tools        []string        `json:"tools"`
	AllowTools   []string        `json:"allow_tools"`
	DenyTools    []string        `json:"deny_tools"`
	Config       json.RawMessage `json:"config_json"`
}

// DecodeJSON decodes the specs of a JSON text: one spec, a list, or an object with a list agents
// or subagent_specs. An entry without agent_id has the older form with flat fields name, model,
// instructions and tools. file is its name in errors.
func DecodeJSON(file string, b []byte) ([]team.AgentSpec, error) {
	var list []json.RawMessage
	if b = bytes.TrimSpace(b); bytes.HasPrefix(b, []byte("[")) {
		if err := json.Unmarshal(b, &list); err != nil {
			return nil, badJSON(file, b, err)
		}
	} else {
		var in map[string]json.RawMessage
		if err := json.Unmarshal(b, &in); err != nil {
			return nil, badJSON(file, b, err)
		}
		inner := in["subagent_specs"]
		if inner == nil {
			inner = in["agents"]
		}
		if inner != nil {
			return DecodeJSON(file, inner)
		}
		list = []json.RawMessage{b}
	}
	var out []team.AgentSpec
	for _, raw := range list {
		s, err := decodeOne(file, raw)
		if err == nil {
			err = s.Validate()
		}
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func decodeOne(file string, raw json.RawMessage) (s team.AgentSpec, err error) {
	var form struct {
		ID *string `json:"agent_id"`
	}
	if err := json.Unmarshal(raw, &form); err != nil {
		return s, badJSON(file, raw, err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if form.ID != nil {
		if err := d.Decode(&s); err != nil {
			return s, badJSON(file, raw, err)
		}
		return s, nil
	}
	var o old
	if err := d.Decode(&o); err != nil {
		return s, badJSON(file, raw, err)
	}
	if len(o.Config) > 0 { // a row of the old table: its config has the rest
		var text string
		if json.Unmarshal(o.Config, &text) == nil {
			o.Config = json.RawMessage(text)
		}
		if err := json.Unmarshal(o.Config, &o); err != nil {
			return s, badJSON(file, o.Config, err)
		}
	}
	s = team.AgentSpec{ID: cmp.Or(o.ID, strings.ToLower(strings.ReplaceAll(o.Name, " ", "-"))), Name: cmp.Or(o.Name, o.ID), Description: o.Description}
	if o.Provider == "" {
		o.Provider, o.Model, _ = strings.Cut(o.Model, "/")
	}
	s.Defaults = team.SpecDefaults{SystemPrompt: cmp.Or(o.SystemPrompt, o.Prompt), Model: team.SpecModel{Provider: o.Provider, Model: o.Model, Temperature: o.Temperature}}
	s.Policy.Tools = team.Filter{Allow: o.AllowTools, Deny: o.DenyTools}
	if o.Tools != nil {
		s.Policy.Tools.Allow = o.Tools
	}
	return s, nil
}

// badJSON adds the position of a mistake, as far as the decoder reports it.
func badJSON(file string, b []byte, err error) error {
	at := int64(-1)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		at = kind.Offset
	default:
		if _, name, ok := strings.Cut(err.Error(), "unknown field "); ok {
			at = int64(bytes.Index(b, []byte(name))) + 1
		}
	}
	if at < 0 {
		return bad("%s: %s", file, strings.TrimPrefix(err.Error(), "json: "))
	}
	before := b[:min(int(at), len(b))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n') - 1
	return bad("%s:%d:%d: %s", file, line, max(column, 1), strings.TrimPrefix(err.Error(), "json: "))
}
