package tool

import (
	"context"

	"github.com/teamctl/teamctl/team"
)

// laterPrefix begins the names of the settings with what is put off; the name of the need follows.
const laterPrefix = "put off "

// Later says until when something that waits for a person is put off, on every screen.
type Later struct {
	Need  string `json:"need"`
	Seen  string `json:"seen"`            // identifies what it said then: it is put off only while it says that
	Until int64  `json:"until,omitempty"` // Unix milliseconds; 0: until it says something else
	By    string `json:"by"`
}

// PutOff records that a need is put off, in place of what was recorded for it before.
func (t *Team) PutOff(ctx context.Context, c Caller, x Later) error {
	if err := mayPutOff(c); err != nil {
		return err
	}
	x.By = c.Name
	return t.as(c).Set(ctx, laterPrefix+x.Need, x)
}

// TakeUp records that needs are not put off any more.
func (t *Team) TakeUp(ctx context.Context, c Caller, needs ...string) error {
	if err := mayPutOff(c); err != nil {
		return err
	}
	for _, need := range needs {
		if err := t.as(c).Set(ctx, laterPrefix+need, nil); err != nil {
			return err
		}
	}
	return nil
}

// PutOffs returns what was put off, by need, without a look at whether it still is.
func (t *Team) PutOffs(ctx context.Context) (map[string]Later, error) {
	names, err := t.Ledger.SettingNames(ctx, laterPrefix)
	if err != nil {
		return nil, err
	}
	out := make(map[string]Later, len(names))
	for _, name := range names {
		var x Later
		there, err := t.Ledger.Setting(ctx, name, &x)
		if err != nil {
			return nil, err
		}
		if there {
			out[x.Need] = x
		}
	}
	return out, nil
}

func mayPutOff(c Caller) error {
	if c.Person {
		return nil
	}
	return team.Errorf(team.CodeDenied, "%s cannot put off what waits for a person", c.Name)
}

// checkSetting is the name of the setting that CheckWrites writes and deletes.
const checkSetting = "write check"

// CheckWrites returns an error if the ledger cannot be written to.
func (t *Team) CheckWrites(ctx context.Context, c Caller) error {
	for _, v := range []any{c.Name, nil} {
		if err := t.as(c).Set(ctx, checkSetting, v); err != nil {
			return err
		}
	}
	return nil
}
