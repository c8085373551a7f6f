package approval

import (
	"context"

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
	r.Member, r.Mode, r.Dir = row.Name, row.Spec.Mode, row.Spec.Cwd
	if row.Worktree != "" {
		r.Dir = row.Worktree
	}
	switch v, rule := permit.Decide(rules, r); v {
	case permit.Allow:
		return &ledger.Decided{Approve: true, By: permit.By, Why: "allowed: " + rule}, nil
	case permit.Deny:
		return &ledger.Decided{By: permit.By, Why: "denied: " + rule}, nil
	case permit.Ask:
	}
	return nil, nil
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
