package ledger

import (
	"context"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

// settingAutoClaim is the name of the setting; AutoClaim is its value.
const settingAutoClaim = "autoClaim"

const sqlOwnerBusy = `SELECT id FROM tasks WHERE owner = ? AND id <> ? AND status IN ('claimed', 'in_progress') AND review IS NULL ORDER BY seq LIMIT 1`

// AutoClaim selects the members that may take the next ready task. Where it is
// off, a claim without an id returns only tasks assigned to the claimer. It
// does not apply to the lead.
type AutoClaim struct {
	Off     bool            `json:"off,omitempty"`     // for the whole team
	Members map[string]bool `json:"members,omitempty"` // by name, overrides Off; true is on
}

// On reports whether the named member claims by itself.
func (a AutoClaim) On(name string) bool {
	if on, ok := a.Members[name]; ok {
		return on
	}
	return !a.Off || name == team.LeadName
}

// AutoClaim reads the setting; by default every member claims.
func (l *Ledger) AutoClaim(ctx context.Context) (a AutoClaim, err error) {
	_, err = l.Setting(ctx, settingAutoClaim, &a)
	return a, err
}

// SetAutoClaim turns it on or off, for one member or, with an empty name, for
// the team, which clears the settings of single members.
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
	return none{}, t.event(Event{What: team.EventAutoClaimSet, ID: in.Name, Before: before, After: after})
}

// autoClaimOn returns the setting of one member from the setting's text.
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

// checkBusy returns an error for a claimer that holds another task.
func (t *tx) checkBusy(in ClaimIn) error {
	id, busy, err := value[string](t, sqlOwnerBusy, in.Owner, in.ID)
	if err == nil && busy {
		err = team.Errorf(team.CodeConflict, "this agent works on task %s", id).WithReason(team.ReasonAgentBusy).
			WithHint("complete or release it first: teamctl task show " + id)
	}
	return err
}
