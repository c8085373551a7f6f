package team

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
)

// Config is config.json: the team as people and other programs read it
// (document 001, TeamConfig). Keys that it does not know are kept on a rewrite,
// in their place. The ledger is the truth; this file is published from it.
type Config struct {
	Name          string
	Description   string // absent when empty
	CreatedAt     int64  // Unix milliseconds
	LeadAgentID   string
	LeadSessionID string
	Members       []ConfigMember
	HiddenPaneIDs []string // absent when empty

	parsed JSONObject // the object it was read from; nil for a new one
}

// ConfigMember is one member in config.json (document 001, TeamMember).
type ConfigMember struct {
	AgentID          string
	Name             string
	AgentType        string // absent when empty, like every field marked so
	Model            string // see Whole
	Prompt           string // see Whole
	Color            string // absent when empty; the lead has none
	PlanModeRequired *bool  // absent when nil: for the lead; false is written for others
	JoinedAt         int64  // Unix milliseconds
	TmuxPaneID       string // "" for the lead, PaneInProcess, or a pane id
	Cwd              string
	Subscriptions    []string // always written, as [] when empty
	BackendType      string   // absent when empty: for the lead
	WorktreePath     string   // absent when empty
	Mode             string   // absent when empty
	IsActive         *bool    // absent when nil, which means active

	// Whole has Model and Prompt written when they are empty too: readers of the recorded
	// format reject a file without. Entries of other programs stay as they are.
	Whole bool

	parsed JSONObject
}

// PaneInProcess is the TmuxPaneID of a member without a pane.
const PaneInProcess = "in-process"

var configFields = []jsonField[Config]{
	stringField("name", true, func(c *Config) *string { return &c.Name }),
	stringField("description", false, func(c *Config) *string { return &c.Description }),
	intField("createdAt", func(c *Config) *int64 { return &c.CreatedAt }),
	stringField("leadAgentId", true, func(c *Config) *string { return &c.LeadAgentID }),
	stringField("leadSessionId", true, func(c *Config) *string { return &c.LeadSessionID }),
	{key: "members", parts: true, encode: encodeMembers, decode: decodeMembers},
	stringsField("hiddenPaneIds", false, func(c *Config) *[]string { return &c.HiddenPaneIDs }),
}

var memberFields = []jsonField[ConfigMember]{
	stringField("agentId", true, func(m *ConfigMember) *string { return &m.AgentID }),
	stringField("name", true, func(m *ConfigMember) *string { return &m.Name }),
	stringField("agentType", false, func(m *ConfigMember) *string { return &m.AgentType }),
	wholeField("model", func(m *ConfigMember) *string { return &m.Model }),
	wholeField("prompt", func(m *ConfigMember) *string { return &m.Prompt }),
	stringField("color", false, func(m *ConfigMember) *string { return &m.Color }),
	boolField("planModeRequired", func(m *ConfigMember) **bool { return &m.PlanModeRequired }),
	intField("joinedAt", func(m *ConfigMember) *int64 { return &m.JoinedAt }),
	stringField("tmuxPaneId", true, func(m *ConfigMember) *string { return &m.TmuxPaneID }),
	stringField("cwd", true, func(m *ConfigMember) *string { return &m.Cwd }),
	stringsField("subscriptions", true, func(m *ConfigMember) *[]string { return &m.Subscriptions }),
	stringField("backendType", false, func(m *ConfigMember) *string { return &m.BackendType }),
	stringField("worktreePath", false, func(m *ConfigMember) *string { return &m.WorktreePath }),
	stringField("mode", false, func(m *ConfigMember) *string { return &m.Mode }),
	boolField("isActive", func(m *ConfigMember) **bool { return &m.IsActive }),
}

// wholeField is a text that is absent when empty unless its member is to be whole.
func wholeField(key string, at func(*ConfigMember) *string) jsonField[ConfigMember] {
	f := stringField(key, false, at)
	plain := f.encode
	f.encode = func(m *ConfigMember) []byte {
		if *at(m) == "" && m.Whole {
			return []byte(`""`)
		}
		return plain(m)
	}
	return f
}

func encodeMembers(c *Config) []byte {
	out := []byte{'['}
	for i := range c.Members {
		if i > 0 {
			out = append(out, ',')
		}
		m := &c.Members[i]
		out = mergeFields(m, m.parsed, memberFields).AppendJSON(out)
	}
	return append(out, ']')
}

func decodeMembers(c *Config, raw json.RawMessage) error {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	c.Members = make([]ConfigMember, len(list))
	for i := range list {
		obj, err := ParseJSONObject(list[i])
		if err != nil {
			return err
		}
		m := &c.Members[i]
		m.parsed = obj
		if err := decodeFields(m, obj, memberFields); err != nil {
			return err
		}
	}
	return nil
}

// ParseConfig reads the text of a config.json. The error is coded and carries
// ReasonCorruptConfig.
func ParseConfig(data []byte) (*Config, error) {
	corrupt := func(err error) error {
		return Errorf(CodeInternal, "config.json is corrupt: %w", err).
			WithReason(ReasonCorruptConfig).
			WithHint("run \"teamctl doctor --repair\" to rebuild it from the ledger")
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	obj, err := ParseJSONObject(data)
	if err != nil {
		return nil, corrupt(err)
	}
	c := &Config{parsed: obj}
	if err := decodeFields(c, obj, configFields); err != nil {
		return nil, corrupt(err)
	}
	if c.Name == "" {
		return nil, corrupt(errors.New("it has no team name"))
	}
	return c, nil
}

// Marshal is the text of config.json as JSON.stringify(config, null, 2) writes
// it: two spaces, nothing escaped for HTML, no newline at the end. Keys of a
// parsed file stay in their order.
func (c *Config) Marshal() ([]byte, error) {
	compact := mergeFields(c, c.parsed, configFields).AppendJSON(nil)
	var out bytes.Buffer
	if err := json.Indent(&out, compact, "", "  "); err != nil {
		return nil, Errorf(CodeInternal, "encode config.json: %w", err)
	}
	return out.Bytes(), nil
}

// ReadConfig reads path. A missing file is CodeNotFound; one that cannot be
// understood is the error of ParseConfig, naming the path. Other programs rewrite
// the file in place, so a caller that shares it with one may try a corrupt one again.
func ReadConfig(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Errorf(CodeNotFound, "read the team's config: %w", err)
	}
	if err != nil {
		return nil, Errorf(CodeInternal, "read the team's config: %w", err)
	}
	c, err := ParseConfig(data)
	if err != nil {
		return nil, Errorf(CodeInternal, "read %s: %w", path, err).
			WithReason(ReasonOf(err)).WithHint(HintOf(err))
	}
	return c, nil
}

// Member finds a member by agent id or name, or returns nil. The pointer is into
// c.Members.
func (c *Config) Member(idOrName string) *ConfigMember {
	if idOrName == "" {
		return nil
	}
	for i := range c.Members {
		if m := &c.Members[i]; m.AgentID == idOrName || m.Name == idOrName {
			return m
		}
	}
	return nil
}

// SetMemberActive sets isActive. An absent one is not equal to true, although it
// means the same: real clients write it unlocked when they wake up, unless they
// find it written.
func (c *Config) SetMemberActive(idOrName string, active bool) (found, changed bool) {
	m := c.Member(idOrName)
	if m == nil {
		return false, false
	}
	changed = m.IsActive == nil || *m.IsActive != active
	m.IsActive = &active
	return true, changed
}
