package approval

import (
	"context"

	"github.com/teamctl/teamctl/internal/permit"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// SettingPermissions are the team's rules for permission requests: team.Permissions.
const SettingPermissions = "permissions"

// ByRules is the answer that the team's rules give to a member's request for
// permission; nil: a person is to be asked. The request's member, mode and directory
// are the row's. A request that came by mail is never brought here: whoever writes
// into a mailbox file may call itself anybody.
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

// RequestOf is what an agent asks for, as the rules see it.
func RequestOf(a team.Ask) permit.Request {
	r := permit.Of(a.Tool, a.Input)
	if a.Command != "" || len(a.Paths) > 0 {
		r.Command, r.Paths = a.Command, a.Paths
	}
	return r
}

// HookRequest is what the ids of requests begin with that a hook has asked for its
// agent: they are of the turn. What an agent asks by a tool outlives it.
const HookRequest = "hook-"
