package ledger

import (
	"context"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

// revision is a setting that replaces the value that was read, and the event
// that records it.
type revision struct {
	setting
	Was   string `json:"was,omitempty"` // the text that was read; "" for none
	Event *Event `json:"event,omitempty"`
}

// Revise replaces a setting by the result of change, and writes the event that
// change returns, in one transaction: concurrent changes are never lost, and
// the setting and its event become visible together. change gets the zero value
// if the setting is not set, and is called again after a concurrent change; if
// it returns false nothing changes.
func Revise[T any](ctx context.Context, l *Ledger, name string, change func(*T) (*Event, bool, error)) error {
	for {
		rows, err := read(ctx, l.db, "read setting "+name, scanOne[string], sqlSettingGet, name)
		if err != nil {
			return err
		}
		r := revision{setting: setting{Name: name}}
		var v T
		if len(rows) > 0 {
			r.Was = rows[0]
			if err := json.Unmarshal([]byte(r.Was), &v); err != nil {
				return team.Errorf(team.CodeInternal, "read setting %s: %w", name, err)
			}
		}
		e, ok, err := change(&v)
		if err != nil || !ok {
			return err
		}
		if r.Value, err = json.Marshal(v); err != nil {
			return team.Errorf(team.CodeInvalid, "set %s: %w", name, err)
		}
		r.Event = e
		if _, err = write[none](ctx, l, opSettingRevise, r); team.ReasonOf(err) != team.ReasonSettingChanged {
			return err
		}
	}
}

func reviseSetting(t *tx, r revision) (none, error) {
	is, _, err := value[string](t, sqlSettingGet, r.Name)
	if err != nil {
		return none{}, err
	}
	if is != r.Was {
		return none{}, team.Errorf(team.CodeConflict, "set %s: it was changed meanwhile", r.Name).WithReason(team.ReasonSettingChanged)
	}
	if _, err := putSetting(t, r.setting); err != nil {
		return none{}, err
	}
	if r.Event != nil {
		_, err = appendEvent(t, *r.Event)
	}
	return none{}, err
}
