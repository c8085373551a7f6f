package ledger

import (
	"context"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

// settingStranded is the name of the setting that is there while ready tasks
// are stranded.
const settingStranded = "stranded"

// Stranded reports what SetStranded has recorded: whether there are ready tasks
// that no member can take.
func (l *Ledger) Stranded(ctx context.Context) (on bool, err error) {
	_, err = l.Setting(ctx, settingStranded, &on)
	return on, err
}

// SetStranded records the ready tasks that no member can take, by the first of
// them; "" if there are none. Once for each time that there are some, it writes
// an event with data, and begun is true.
func (l *Ledger) SetStranded(ctx context.Context, first string, data json.RawMessage) (begun bool, err error) {
	return write[bool](ctx, l, opStranded, strandedArgs{first, data})
}

type strandedArgs struct {
	First string          `json:"first,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
}

func setStranded(t *tx, in strandedArgs) (begun bool, err error) {
	_, was, err := value[string](t, sqlSettingGet, settingStranded)
	if err != nil || was == (in.First != "") {
		return false, err
	}
	if in.First == "" {
		_, err = t.exec(sqlSettingDrop, settingStranded)
		return false, err
	}
	if _, err := t.exec(sqlSettingPut, settingStranded, "true"); err != nil {
		return false, err
	}
	return true, t.event(Event{What: team.EventTaskStranded, ID: in.First, Data: in.Data})
}
