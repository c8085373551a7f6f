package ledger

import (
	"context"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

const (
	sqlSettingGet  = `SELECT value FROM settings WHERE name = ?`
	sqlSettingPut  = `INSERT INTO settings(name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
	sqlSettingLike = `SELECT name FROM settings WHERE name >= ?1 AND substr(name, 1, length(?1)) = ?1 ORDER BY name`
	sqlSettingDrop = `DELETE FROM settings WHERE name = ?`
)

type setting struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value,omitempty"` // absent: delete the setting
}

// Setting decodes the team's setting called name into v; ok is false if it is
// not set.
func (l *Ledger) Setting(ctx context.Context, name string, v any) (ok bool, err error) {
	rows, err := read(ctx, l.db, "read setting "+name, scanOne[string], sqlSettingGet, name)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	if err := json.Unmarshal([]byte(rows[0]), v); err != nil {
		return false, team.Errorf(team.CodeInternal, "read setting %s: %w", name, err)
	}
	return true, nil
}

// SettingNames lists the names of settings that start with prefix.
func (l *Ledger) SettingNames(ctx context.Context, prefix string) ([]string, error) {
	return read(ctx, l.db, "list settings "+prefix, scanOne[string], sqlSettingLike, prefix)
}

// Set sets a setting; nil deletes it.
func (l *Ledger) Set(ctx context.Context, name string, v any) error {
	s := setting{Name: name}
	if v != nil {
		raw, err := json.Marshal(v)
		if err != nil {
			return team.Errorf(team.CodeInvalid, "set %s: %w", name, err)
		}
		s.Value = raw
	}
	_, err := write[none](ctx, l, opSettingPut, s)
	return err
}

func putSetting(t *tx, s setting) (none, error) {
	if s.Name == "" {
		return none{}, team.Errorf(team.CodeInvalid, "a setting needs a name")
	}
	var err error
	if len(s.Value) == 0 || string(s.Value) == "null" {
		_, err = t.exec(sqlSettingDrop, s.Name)
	} else {
		_, err = t.exec(sqlSettingPut, s.Name, string(s.Value))
	}
	return none{}, err
}
