package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/teamctl/teamctl/internal/permit"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/approval"
	"github.com/teamctl/teamctl/team"
)

// Permissions returns the rules by which the team answers permission requests itself.
func (t *Team) Permissions(ctx context.Context) (team.Permissions, error) {
	p := team.Permissions{Deny: []team.PermissionRule{}, Allow: []team.PermissionRule{}}
	_, err := t.Ledger.Setting(ctx, approval.SettingPermissions, &p)
	return p, err
}

// SetPermissions replaces the rules. Only a person may: rules answer requests in a person's place.
func (t *Team) SetPermissions(ctx context.Context, c Caller, p team.Permissions) error {
	if !c.Person {
		return team.Errorf(team.CodeDenied, "%s may not change the permission rules", c.Name).
			WithReason(team.ReasonRole).WithHint("teamctl approvals rules --help: a person sets them at a shell")
	}
	for _, list := range [][]team.PermissionRule{p.Deny, p.Allow} {
		for _, r := range list {
			if err := permit.Check(r); err != nil {
				return team.Errorf(team.CodeInvalid, "rule %q: %w", r, err).WithReason(team.ReasonBadRule)
			}
		}
	}
	if err := t.as(c).Set(ctx, approval.SettingPermissions, p); err != nil {
		return err
	}
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode the rules: %w", err)
	}
	_, err = t.as(c).Event(ctx, ledger.Event{What: team.EventPermissionsChanged, Data: data})
	return err
}
