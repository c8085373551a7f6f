package tool

import (
	"context"

	"github.com/teamctl/teamctl/internal/publish"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// SetRole changes the role of a member. Its permissions change at once, and tasks that it may no
// longer work on return to the board. The current role is not a change. No member changes its own
// role, only a person makes an operator, and the lead stays the leader.
func (t *Team) SetRole(ctx context.Context, c Caller, name string, role team.Role) (ledger.Member, error) {
	if err := t.may(ctx, c, OpMode); err != nil {
		return ledger.Member{}, err
	}
	m, err := t.Member(ctx, name)
	if err != nil {
		return m, err
	}
	if role, err = team.ParseRole(string(role)); err != nil {
		return m, err
	}
	switch {
	case m.Role == role:
		return m, t.freeTasks(ctx, c, m) // an earlier call may have been killed
	case m.Name == team.LeadName:
		return m, team.Errorf(team.CodeDenied, "the lead's role is %s", m.Role).WithReason(team.ReasonRole)
	case !c.Person && m.SessionKey == c.Session:
		return m, team.Errorf(team.CodeDenied, "%s cannot change its own role", c.Name).WithReason(team.ReasonOwnRole)
	case !c.Person && (role == team.RoleOperator || m.Role == team.RoleOperator):
		return m, team.Errorf(team.CodeDenied, "only a person may make a member an operator").WithReason(team.ReasonRole)
	}
	if m, err = t.as(c).UpdateMember(ctx, ledger.MemberPatch{SessionKey: m.SessionKey, Role: &role}); err != nil {
		return m, err
	}
	if err := t.freeTasks(ctx, c, m); err != nil {
		return m, err
	}
	return m, publish.Config(ctx, t.Layout, t.Ledger)
}

// freeTasks releases a member's tasks that its role may not work on: the member could not end
// them, and no other could get them while it is alive. Work in verification or review is done, and
// stays.
func (t *Team) freeTasks(ctx context.Context, c Caller, m ledger.Member) error {
	if roles()[OpTaskWork][m.Role] != no {
		return nil
	}
	tasks, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{Owner: m.SessionKey, OpenOnly: true})
	if err != nil {
		return err
	}
	for _, task := range tasks {
		if task.Review != 0 || task.Verification != 0 {
			continue
		}
		if _, err := t.as(c).Reassign(ctx, task.ID, "", c.Name); err != nil && team.ReasonOf(err) != team.ReasonAlreadyResolved {
			return err
		}
	}
	return nil
}
