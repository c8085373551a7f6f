package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

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
	if err := mayRule(c); err != nil {
		return err
	}
	for _, list := range [][]team.PermissionRule{p.Deny, p.Allow} {
		for _, r := range list {
			if err := permit.Check(r); err != nil {
				return team.Errorf(team.CodeInvalid, "rule %q: %w", r, err).WithReason(team.ReasonBadRule)
			}
		}
	}
	return ledger.Revise(ctx, t.as(c), approval.SettingPermissions, func(now *team.Permissions) (*ledger.Event, bool, error) {
		*now = p
		data, err := json.Marshal(p)
		return &ledger.Event{Who: c.Name, What: team.EventPermissionsChanged, Data: data}, true, err
	})
}

func mayRule(c Caller) error {
	if c.Person {
		return nil
	}
	return team.Errorf(team.CodeDenied, "%s may not change the permission rules", c.Name).
		WithReason(team.ReasonRole).WithHint("teamctl approvals rules --help: a person sets them at a shell")
}

// RuleFor returns the rule that would allow the like of a permission request from now on; ok is
// false if there is none that means this request and little else.
func (t *Team) RuleFor(ctx context.Context, a ledger.Approval) (rule team.PermissionRule, ok bool, err error) {
	r, err := approval.RulesOn(ctx, t.Ledger, a)
	return r.Add, r.OK, err
}

// RuleNames reports whether a rule of the team names the tool of a permission request, or the rules
// never decide such a request.
func (t *Team) RuleNames(ctx context.Context, a ledger.Approval) (bool, error) {
	r, err := approval.RulesOn(ctx, t.Ledger, a)
	return r.Named, err
}

// ruleToAdd checks an approval that adds a rule.
func (t *Team) ruleToAdd(ctx context.Context, c Caller, in AnswerIn) (team.PermissionRule, error) {
	if err := mayRule(c); err != nil {
		return team.PermissionRule{}, err
	}
	a, err := t.Ledger.Approval(ctx, in.ID)
	if err != nil {
		return team.PermissionRule{}, err
	}
	if a.Kind != ledger.ApprovePermission || !in.Approve {
		return team.PermissionRule{}, team.Errorf(team.CodeInvalid, "only an approved permission can be allowed from now on")
	}
	if len(in.UpdatedInput) > 0 {
		return team.PermissionRule{}, team.Errorf(team.CodeInvalid, "a call with another input cannot be allowed from now on: the rule would be for what was asked")
	}
	rule, ok, err := t.RuleFor(ctx, a)
	if err == nil && !ok {
		err = team.Errorf(team.CodeInvalid, "no rule can allow permission %d from now on, and little else", a.ID).
			WithReason(team.ReasonBadRule).WithHint(fmt.Sprintf("teamctl approvals approve %d; wider rules: teamctl approvals rules --help", a.ID))
	}
	return rule, err
}

// allow adds a rule, unless the team has it.
func (t *Team) allow(ctx context.Context, c Caller, rule team.PermissionRule) error {
	return ledger.Revise(ctx, t.as(c), approval.SettingPermissions, func(p *team.Permissions) (*ledger.Event, bool, error) {
		if slices.ContainsFunc(p.Allow, func(r team.PermissionRule) bool { return reflect.DeepEqual(r, rule) }) {
			return nil, false, nil
		}
		p.Allow = append(p.Allow, rule)
		data, err := json.Marshal(p)
		return &ledger.Event{Who: c.Name, What: team.EventPermissionsChanged, Data: data}, true, err
	})
}
