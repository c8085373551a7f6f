package tool

import (
	"cmp"
	"context"
	"os"
	"strings"

	"github.com/teamctl/teamctl/internal/publish"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/team"
)

// JoinIn adds a program on this machine as a member. Nothing is started for it.
type JoinIn struct {
	Name  string `json:"name"`
	Role  string `json:"role,omitempty"`
	Exact bool   `json:"exact,omitempty"`
}

// Joined is what a program needs to act as a member. Env has its secret: it is only for the
// program and appears in no list.
type Joined struct {
	Member    ledger.Member `json:"member"`
	Renamed   bool          `json:"renamed,omitempty"`
	Warnings  []string      `json:"warnings,omitempty"`
	TokenFile string        `json:"tokenFile"`
	Env       []string      `json:"-"` // KEY=VALUE
}

// Join adds a program unknown to teamctl to the roster. The program works with the returned
// environment: teamctl's commands, the mailbox, the ledger. Its tasks are held by lease, since its
// process is not observed.
func (t *Team) Join(ctx context.Context, c Caller, in JoinIn) (Joined, error) {
	if err := t.may(ctx, c, OpJoin); err != nil {
		return Joined{}, err
	}
	name, err := team.AgentKey(in.Name)
	if err != nil {
		return Joined{}, err
	}
	role, err := team.ParseRole(in.Role)
	if err != nil {
		return Joined{}, err
	}
	if !c.Person && (role == team.RoleLeader || role == team.RoleOperator) {
		return Joined{}, team.Errorf(team.CodeDenied, "only a person makes a member %s", role).WithReason(team.ReasonRole)
	}
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return Joined{}, err
	}
	led := t.as(c)
	m, renamed, err := led.AddMember(ctx, ledger.Member{
		Name: name, Role: role, Desired: team.WantStopped, Observed: team.Pending, Activity: team.ActivityUnknown,
		Spec: team.MemberSpec{Agent: team.AgentExternal, AgentType: team.AgentExternal, WorktreeMode: "none", Cwd: row.Repo,
			Origin: team.Origin{ParentSession: row.LeadSession, SpawnedBy: cmp.Or(c.Session, row.LeadSession), Lane: "teammate"}},
	}, in.Exact)
	if err != nil {
		return Joined{}, err
	}
	token := supervisor.NewToken()
	hash := ledger.HashToken(token)
	b := t.Layout.Bundle(m.Name)
	err = supervisor.WriteToken(b, token)
	if err == nil {
		m, err = led.UpdateMember(ctx, ledger.MemberPatch{SessionKey: m.SessionKey, TokenHash: &hash})
	}
	if err == nil {
		err = t.mailer(c).Fresh(ctx, m)
	}
	if err == nil {
		err = publish.Config(ctx, t.Layout, t.Ledger)
	}
	if err != nil { // undo everything
		if rerr := led.RemoveMember(context.WithoutCancel(ctx), m.SessionKey); rerr != nil {
			return Joined{}, rerr
		}
		return Joined{}, err
	}
	out := Joined{Member: m, Renamed: renamed, TokenFile: b.Token(), Env: []string{
		team.EnvHome + "=" + t.Layout.Home.Dir, team.EnvTeam + "=" + t.Layout.Key,
		team.EnvAgentID + "=" + m.AgentID, team.EnvAgentName + "=" + m.Name, team.EnvColor + "=" + m.Color,
		team.EnvParent + "=" + row.LeadSession, team.EnvToken + "=" + token,
	}}
	if renamed {
		out.Warnings = append(out.Warnings, t.taken(ctx, name))
	}
	if dir := os.Getenv(team.EnvRuntime); dir != "" {
		out.Env = append(out.Env, team.EnvRuntime+"="+dir)
	}
	return out, nil
}

// Leave removes a joined program from the roster: the caller itself, or another one that the
// caller may manage. Its tasks return to the board.
func (t *Team) Leave(ctx context.Context, c Caller, name string) (ledger.Member, error) {
	if name == "" {
		if c.Person {
			return ledger.Member{}, team.Errorf(team.CodeInvalid, "name the member that leaves").WithHint("teamctl leave NAME")
		}
		name = c.Name
	}
	m, err := t.Member(ctx, name)
	if err != nil {
		return m, err
	}
	if !strings.EqualFold(m.Name, c.Name) || c.Person {
		if err := t.may(ctx, c, OpRule); err != nil {
			return m, err
		}
	}
	switch {
	case m.RemovedAt != 0:
		return m, team.Errorf(team.CodeConflict, "%s has left already", m.Name).WithReason(team.ReasonMemberRemoved)
	case !team.KindOf(m.Spec.Agent).External:
		return m, team.Errorf(team.CodeConflict, "%s is not a program that has joined", m.Name).WithReason(team.ReasonSupervised).
			WithHint("teamctl shutdown " + m.Name)
	}
	return m, t.leave(ctx, c, m)
}

// leave removes a joined program from the roster; one that has left meanwhile is not an error.
func (t *Team) leave(ctx context.Context, c Caller, m ledger.Member) error {
	by := c.Name
	if c.Person || c.Session != m.SessionKey {
		by = ""
	}
	return services.Leave(ctx, t.mailer(c), m, by)
}
