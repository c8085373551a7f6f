package hooks

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/goccy/go-yaml"

	"github.com/teamctl/teamctl/internal/private"
	"github.com/teamctl/teamctl/team"
)

// ConfigFile is teamctl's own configuration; hooks stand under its key hooks.
func ConfigFile(h team.Home) string { return filepath.Join(h.Dir, "config.yaml") }

// Load reads the person's own hooks. Without a file there are none.
func Load(h team.Home) (Set, error) {
	path := ConfigFile(h)
	data, err := private.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if r := (*private.Refusal)(nil); errors.As(err, &r) {
		e := team.Errorf(team.CodeDenied, "read hooks: %w", err).WithReason(team.ReasonNotPrivate)
		if r.Mend != nil {
			return nil, e.WithHint(team.ShellLine(r.Mend))
		}
		return nil, e.WithHint("read it, and if it is good make it yours: sudo chown " + strconv.Itoa(os.Geteuid()) + " " + team.ShellQuote(path))
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	var file struct {
		Hooks map[string]any `yaml:"hooks"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, unreadable(path, errors.New(yaml.FormatError(err, false, false)))
	}
	set := Set{}
	for name, value := range file.Hooks {
		kind, err := ParseKind(name)
		if err != nil {
			return nil, team.Errorf(team.CodeInvalid, "%s: %w", path, err).WithReason(team.ReasonBadConfig).WithHint(team.HintOf(err))
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, unreadable(path, err)
		}
		var list []Hook
		if _, many := value.([]any); many {
			err = json.Unmarshal(raw, &list)
		} else {
			list = make([]Hook, 1)
			err = json.Unmarshal(raw, &list[0])
		}
		if err != nil {
			return nil, team.Errorf(team.CodeInvalid, "%s: hooks.%s: %w", path, name, err).WithReason(team.ReasonBadConfig).WithHint("docs/hooks.md")
		}
		set[kind] = list
	}
	return set, nil
}

func unreadable(path string, err error) error {
	return team.Errorf(team.CodeInvalid, "read %s: %w", path, err).WithReason(team.ReasonBadConfig).WithHint("docs/hooks.md describes its content")
}
