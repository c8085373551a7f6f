package main

import (
	"context"
	"os"

	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// caller identifies the caller: the member that --as or the environment names, if its token proves
// it, else the person at the shell. A process started by a member is never a person, even if it
// has dropped the member's name.
func (a *app) caller(ctx context.Context, t *tool.Team) (tool.Caller, error) {
	id := a.as
	if id == "" {
		id = os.Getenv(team.EnvAgentID)
	}
	if id != "" {
		return t.Identify(ctx, id, os.Getenv(team.EnvToken))
	}
	if member := startedBy(t.Layout); member != "" {
		return tool.Caller{}, team.Errorf(team.CodeDenied, "this process was started by %s and cannot act as a person", member).
			WithReason(team.ReasonNotAPerson).WithHint("leave " + team.EnvAgentID + " and " + team.EnvToken + " in the environment")
	}
	return tool.Person(), nil
}

// origin reports whether a supervisor may inherit the environment of this process. A member's
// process remains a member's even if it has dropped the member's name.
func (a *app) origin(l team.Layout) control.Origin {
	o := control.OriginOf(os.Environ())
	switch {
	case o != control.FromMember && heldBy(l) != "":
		return control.FromMember
	case o == control.FromPerson && a.served:
		return control.FromProgram
	}
	return o
}

// outsider identifies the caller when no team is open: an agent remains an agent.
func (a *app) outsider() tool.Caller {
	id := a.as
	if id == "" {
		id = os.Getenv(team.EnvAgentID)
	}
	if id != "" {
		name, _, _ := team.ParseAgentID(id)
		return tool.Caller{Name: name, Role: team.RoleExecutor}
	}
	return tool.Person()
}
