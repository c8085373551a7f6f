package tool

import (
	"context"

	"github.com/teamctl/teamctl/team"
)

// Identify returns the member that a process claims to be, verified by its token. Everything
// written in its name after that comes from it. An error is CodeDenied: other_team, not_a_member,
// or token.
func (t *Team) Identify(ctx context.Context, agentID, token string) (Caller, error) {
	name, key, ok := team.ParseAgentID(agentID)
	if !ok {
		name, key = agentID, t.Layout.Key
	}
	if key != t.Layout.Key {
		return Caller{}, team.Errorf(team.CodeDenied, "%s is not a member of team %q", agentID, t.Layout.Key).
			WithReason(team.ReasonOtherTeam).WithHint("work on your own team: leave out --team")
	}
	m, err := t.Member(ctx, name)
	if team.IsCode(err, team.CodeNotFound) || err == nil && m.RemovedAt != 0 {
		return Caller{}, team.Errorf(team.CodeDenied, "%s is not on the roster", team.AgentID(name, key)).WithReason(team.ReasonNotAMember)
	}
	if err != nil {
		return Caller{}, err
	}
	valid, err := t.Ledger.CheckToken(ctx, m.SessionKey, token)
	if err != nil {
		return Caller{}, err
	}
	if !valid {
		what, reason := "its token is of another member or an earlier start", team.ReasonToken
		if token == "" {
			what, reason = "there is no token", team.ReasonNoToken
		}
		return Caller{}, team.Errorf(team.CodeDenied, "cannot act as %s: %s", m.AgentID, what).
			WithReason(reason).WithHint("the token of a member is in " + team.EnvToken + " of its own process")
	}
	return Caller{Name: m.Name, Session: m.SessionKey, Role: m.Role, Mode: m.Spec.Mode}, nil
}
