package tool

import (
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Each session of a team has its team and its role in it; its rights follow the current
// role, not an earlier one.
func TestSessionsCarryTeamAndRole(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	ann, token := r.member("ann", team.RoleExecutor)
	row, err := r.Ledger.Team(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for session, want := range map[string]struct {
		name string
		role team.Role
	}{
		row.LeadSession: {team.LeadName, team.RoleLeader},
		ann.Session:     {"ann", team.RoleExecutor},
	} {
		m, err := r.Ledger.MemberBySession(ctx, session)
		if err != nil {
			t.Fatal(err)
		}
		name, id, ok := team.ParseAgentID(m.AgentID)
		if !ok || name != want.name || id != row.Key || m.Role != want.role {
			t.Errorf("%s: %+v", session, m)
		}
		cfg, err := team.ReadConfig(r.Layout.Config())
		if err != nil || cfg.Name != row.Name || cfg.LeadAgentID != team.AgentID(team.LeadName, row.Key) {
			t.Errorf("%+v, %v", cfg, err)
		}
	}
	// A caller that claims another team, or an identity that is not its own, has no role.
	_, err = r.Identify(ctx, "ann@other", token)
	denied(t, err, team.CodeDenied, "other_team")
	_, err = r.Identify(ctx, ann.Name, "guessed")
	denied(t, err, team.CodeDenied, "token")

	add := func(c Caller) error {
		_, err := r.TaskAdd(ctx, c, TaskAddIn{Tasks: []ledger.NewTask{{Subject: "x"}}})
		return err
	}
	as := func(role team.Role) Caller {
		t.Helper()
		if _, err := r.SetRole(ctx, Person(), "ann", role); err != nil {
			t.Fatal(err)
		}
		c, err := r.Identify(ctx, "ann", token)
		if err != nil || c.Role != role || c.Session != ann.Session {
			t.Fatalf("%+v, %v", c, err)
		}
		return c
	}
	if err := add(as(team.RoleLeader)); err != nil {
		t.Error(err)
	}
	denied(t, add(as(team.RoleObserver)), team.CodeDenied, "role")
}
