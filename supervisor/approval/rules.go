package approval

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/teamctl/teamctl/internal/permit"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// SettingPermissions is the setting with the team's permission rules: team.Permissions.
const SettingPermissions = "permissions"

// ByRules returns the answer of the team's rules to a member's permission request; nil: a person
// decides. The request's member, mode and directory come from the row. It must not be used for
// requests that came by mail, since a writer to a mailbox file may use any name.
func ByRules(ctx context.Context, l *ledger.Ledger, row ledger.Member, r permit.Request) (*ledger.Decided, error) {
	var rules team.Permissions
	if _, err := l.Setting(ctx, SettingPermissions, &rules); err != nil || rules.None() {
		return nil, err
	}
	switch v, rule := permit.Decide(rules, by(row, r)); v {
	case permit.Allow:
		return &ledger.Decided{Approve: true, By: permit.By, Why: "allowed: " + rule}, nil
	case permit.Deny:
		return &ledger.Decided{By: permit.By, Why: "denied: " + rule}, nil
	case permit.Ask:
	}
	return nil, nil
}

// by is a request by a member.
func by(row ledger.Member, r permit.Request) permit.Request {
	r.Member, r.Mode, r.Dir = row.Name, row.Spec.Mode, row.Spec.Cwd
	if row.Worktree != "" {
		r.Dir = row.Worktree
	}
	return r
}

// Ruled is what the rules of a team have to do with a permission request.
type Ruled struct {
	// Add is the rule that would allow the like of it from now on. OK is false where the team's rules
	// never decide (questions, and what came by mail or stands on a screen only), where one denies it,
	// and where no rule means this request and little else.
	Add   team.PermissionRule
	OK    bool
	Named bool // a rule names its tool, or rules do not concern it
}

// RulesOn returns what the team's rules have to do with a permission request.
func RulesOn(ctx context.Context, l *ledger.Ledger, a ledger.Approval) (Ruled, error) {
	none := Ruled{Named: true}
	var asked struct {
		team.Ask
		ToolName  string          `json:"tool_name"`
		Questions []team.Question `json:"questions"`
	}
	byMail := a.Message == "" && a.Name != team.LeadName
	if a.Kind != ledger.ApprovePermission || byMail || json.Unmarshal(a.Payload, &asked) != nil || asked.Screen || len(asked.Questions) > 0 {
		return none, nil
	}
	row, err := l.MemberBySession(ctx, a.Session)
	if team.IsCode(err, team.CodeNotFound) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	var rules team.Permissions
	if _, err := l.Setting(ctx, SettingPermissions, &rules); err != nil {
		return none, err
	}
	asked.Tool = cmp.Or(asked.Tool, asked.ToolName)
	r := by(row, RequestOf(asked.Ask))
	out := Ruled{Named: permit.Named(rules, r)}
	if out.Add, out.OK = permit.RuleFor(r); out.OK {
		v, _ := permit.Decide(team.Permissions{Deny: rules.Deny, Allow: []team.PermissionRule{out.Add}}, r)
		out.OK = v == permit.Allow
	}
	return out, nil
}

// RequestOf converts an agent's request for the rules.
func RequestOf(a team.Ask) permit.Request {
	r := permit.Of(a.Tool, a.Input)
	if a.Command != "" || len(a.Paths) > 0 {
		r.Command, r.Paths = a.Command, a.Paths
	}
	return r
}

// HookRequest is the prefix of request ids for requests by a hook: they end with the turn.
// Requests that an agent makes with a tool outlive it.
const HookRequest = "hook-"
