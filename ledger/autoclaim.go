package ledger

import (
	"context"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

// settingAutoClaim is the name of the setting; AutoClaim is its value.
const settingAutoClaim = "autoClaim"

const sqlOwnerBusy = `SELECT id FROM tasks WHERE owner = ? AND id <> ? AND status IN ('claimed', 'in_progress') AND review IS NULL ORDER BY seq LIMIT 1`

// AutoClaim says who takes the next ready task without being told which. Where it
// is off, a claim without an id gives what was assigned to the claimer only. The
// lead is not bound by it.
type AutoClaim struct {
	Off     bool            `json:"off,omitempty"`     // for the whole team
	Members map[string]bool `json:"members,omitempty"` // by name, before the above; true is on
}

// On reports whether the member with this name claims by itself.
func (a AutoClaim) On(name string) bool {
	if on, ok := a.Members[name]; ok {
		return on
	}
	return !a.Off || name == team.LeadName
}

// AutoClaim reads the switch; without one everybody claims.
func (l *Ledger) AutoClaim(ctx context.Context) (a AutoClaim, err error) {
	_, err = l.Setting(ctx, settingAutoClaim, &a)
	return a, err
}

// SetAutoClaim turns it on or off, for one member or, with an empty name, for the
// team, which forgets what was said for single members.
func (l *Ledger) SetAutoClaim(ctx context.Context, name string, on bool) error {
	_, err := write[none](ctx, l, opAutoClaim, autoClaimArgs{name, on})
	return err
}

type autoClaimArgs struct {
	Name string `json:"name,omitempty"`
	On   bool   `json:"on"`
}

func setAutoClaim(t *tx, in autoClaimArgs) (none, error) {
	before, _, err := value[string](t, sqlSettingGet, settingAutoClaim)
	if err != nil {
		return none{}, err
	}
	a := AutoClaim{Off: !in.On}
	if in.Name != "" {
		a = AutoClaim{}
		if before != "" {
			if err := json.Unmarshal([]byte(before), &a); err != nil {
				return none{}, err
			}
		}
		if a.Members == nil {
			a.Members = map[string]bool{}
		}
		a.Members[in.Name] = in.On
	}
	after := mustJSON(a)
	if _, err := t.exec(sqlSettingPut, settingAutoClaim, after); err != nil {
		return none{}, err
	}
	return none{}, t.event(Event{What: "autoclaim.set", ID: in.Name, Before: before, After: after})
}

// autoClaimOn reads the switch of one member from the setting's text.
func autoClaimOn(text, name string) (bool, error) {
	if text == "" {
		return true, nil
	}
	var a AutoClaim
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return true, err
	}
	return a.On(name), nil
}

// checkBusy refuses a claimer that holds another task.
func (t *tx) checkBusy(in ClaimIn) error {
	id, busy, err := value[string](t, sqlOwnerBusy, in.Owner, in.ID)
	if err == nil && busy {
		err = team.Errorf(team.CodeConflict, "this agent works on task %s", id).WithReason(ReasonAgentBusy).
			WithHint("complete or release it first: teamctl task show " + id)
	}
	return err
}
