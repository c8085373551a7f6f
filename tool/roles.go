package tool

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Operation is a caller's action, as named in the table of roles.
type Operation string

// Operations. Reading is always allowed and not listed.
const (
	OpTeamCreate  Operation = "create a team"
	OpTeamDelete  Operation = "delete the team"
	OpSettings    Operation = "change the team's settings"
	OpSpawn       Operation = "spawn members"
	OpRule        Operation = "stop or start members"
	OpShutdown    Operation = "ask members to shut down"
	OpMode        Operation = "change permission modes"
	OpJoin        Operation = "let a program join"
	OpSend        Operation = "send messages"
	OpBroadcast   Operation = "broadcast"
	OpDelegate    Operation = "delegate work"
	OpTaskAdd     Operation = "add tasks"
	OpTaskWork    Operation = "work on tasks"
	OpTaskRetry   Operation = "retry tasks"
	OpTaskVerify  Operation = "say how a task is verified"
	OpTaskManage  Operation = "assign or change tasks"
	OpAsk         Operation = "ask for an approval"
	OpPlan        Operation = "submit a plan"
	OpAnswer      Operation = "answer an approval"
	OpReview      Operation = "review tasks"
	OpScratchpad  Operation = "write to the scratchpad"
	OpRun         Operation = "start or close runs"
	OpWorktree    Operation = "work on worktrees"
	OpWorktrees   Operation = "work on the worktrees of others"
	OpMaintenance Operation = "repair or prune the team"
	OpSpecs       Operation = "make or change agent specs"
	OpSessions    Operation = "work with its conversations"
)

// grant is one cell of the table of roles.
type grant int

const (
	no     grant = iota
	yes          // by the team's settings: forbidden by default
	policy       // if the approval names the role
	named        // always, but logged if the role is not meant for it
	bypass       // always, but what the role is not meant for is logged
)

// roles is the table of permissions. A person may do everything; the first column is a member that
// was made a leader.
var roles = sync.OnceValue(func() map[Operation]map[team.Role]grant {
	return map[Operation]map[team.Role]grant{
		OpTeamCreate:  {team.RoleLeader: yes, team.RoleExecutor: no, team.RoleReviewer: no, team.RoleObserver: no, team.RoleOperator: no},
		OpTeamDelete:  {team.RoleLeader: yes, team.RoleExecutor: no, team.RoleReviewer: no, team.RoleObserver: no, team.RoleOperator: bypass},
		OpSettings:    {team.RoleLeader: no, team.RoleExecutor: no, team.RoleReviewer: no, team.RoleObserver: no, team.RoleOperator: bypass},
		OpSpawn:       {team.RoleLeader: yes, team.RoleExecutor: policy, team.RoleReviewer: no, team.RoleObserver: no, team.RoleOperator: bypass},
		OpRule:        {team.RoleLeader: yes, team.RoleExecutor: no, team.RoleReviewer: no, team.RoleObserver: no, team.RoleOperator: bypass},
		OpShutdown:    {team.RoleLeader: yes, team.RoleExecutor: no, team.RoleReviewer: no, team.RoleObserver: no, team.RoleOperator: bypass},
		OpMode:        {team.RoleLeader: yes, team.RoleExecutor: no, team.RoleReviewer: no, team.RoleObserver: no, team.RoleOperator: bypass},
		OpJoin:        {team.RoleLeader: yes, team.RoleExecutor: no, team.RoleReviewer: no, team.RoleObserver: no, team.RoleOperator: bypass},
		OpSend:        {team.RoleLeader: yes, team.RoleExecutor: yes, team.RoleReviewer: yes, team.RoleObserver: no, team.RoleOperator: yes},
		OpBroadcast:   {team.RoleLeader: yes, team.RoleExecutor: policy, team.RoleReviewer: policy, team.RoleObserver: no, team.RoleOperator: yes},
		OpDelegate:    {team.RoleLeader: yes, team.RoleExecutor: policy, team.RoleReviewer: policy, team.RoleObserver: no, team.RoleOperator: bypass},
		OpTaskAdd:     {team.RoleLeader: yes, team.RoleExecutor: yes, team.RoleReviewer: yes, team.RoleObserver: no, team.RoleOperator: yes},
		OpTaskWork:    {team.RoleLeader: yes, team.RoleExecutor: yes, team.RoleReviewer: no, team.RoleObserver: no, team.RoleOperator: yes},
		OpTaskRetry:   {team.RoleLeader: yes, team.RoleExecutor: yes, team.RoleReviewer: yes, team.RoleObserver: no, team.RoleOperator: yes},
		OpTaskVerify:  {team.RoleLeader: yes, team.RoleExecutor: no, team.RoleReviewer: no, team.RoleObserver: no, team.RoleOperator: no},
		OpTaskManage:  {team.RoleLeader: yes, team.RoleExecutor: no, team.RoleReviewer: no, team.RoleObserver: no, team.RoleOperator: bypass},
		OpAsk:         {team.RoleLeader: yes, team.RoleExecutor: yes, team.RoleReviewer: yes, team.RoleObserver: yes, team.RoleOperator: yes},
		OpPlan:        {team.RoleLeader: yes, team.RoleExecutor: yes, team.RoleReviewer: yes, team.RoleObserver: yes, team.RoleOperator: yes},
		OpAnswer:      {team.RoleLeader: named, team.RoleExecutor: no, team.RoleReviewer: named, team.RoleObserver: no, team.RoleOperator: bypass},
		OpReview:      {team.RoleLeader: yes, team.RoleExecutor: no, team.RoleReviewer: yes, team.RoleObserver: no, team.RoleOperator: bypass},
		OpScratchpad:  {team.RoleLeader: yes, team.RoleExecutor: yes, team.RoleReviewer: yes, team.RoleObserver: no, team.RoleOperator: yes},
		OpRun:         {team.RoleLeader: yes, team.RoleExecutor: no, team.RoleReviewer: no, team.RoleObserver: no, team.RoleOperator: bypass},
		OpWorktree:    {team.RoleLeader: yes, team.RoleExecutor: yes, team.RoleReviewer: yes, team.RoleObserver: no, team.RoleOperator: yes},
		OpWorktrees:   {team.RoleLeader: yes, team.RoleExecutor: no, team.RoleReviewer: no, team.RoleObserver: no, team.RoleOperator: bypass},
		OpMaintenance: {team.RoleLeader: no, team.RoleExecutor: no, team.RoleReviewer: no, team.RoleObserver: no, team.RoleOperator: bypass},
		OpSpecs:       {team.RoleLeader: yes, team.RoleExecutor: yes, team.RoleReviewer: no, team.RoleObserver: no, team.RoleOperator: bypass},
		OpSessions:    {team.RoleLeader: yes, team.RoleExecutor: yes, team.RoleReviewer: yes, team.RoleObserver: no, team.RoleOperator: yes},
	}
})

// granted returns the cell for a caller; unknown operations and roles have none.
func granted(c Caller, op Operation) grant {
	if !modeAllows(c.Mode, op) {
		return no
	}
	if c.Person {
		return yes
	}
	return roles()[op][c.Role]
}

// may refuses an operation that the caller's role does not permit, and any on a read-only team. It
// first logs what an operator does beyond other roles. The operation itself checks policies and
// named answerers.
func (t *Team) may(ctx context.Context, c Caller, op Operation) error {
	if t.Elsewhere != nil {
		return t.Elsewhere
	}
	switch granted(c, op) {
	case yes, policy, named:
		return nil
	case bypass:
		return t.logBypass(ctx, c, string(op))
	case no:
	}
	return errRole(c, op)
}

func errRole(c Caller, op Operation) *team.Error {
	if !modeAllows(c.Mode, op) {
		return errMode(c, op)
	}
	e := team.Errorf(team.CodeDenied, "%s (%s) may not %s", c.Name, c.Role, op).WithReason(team.ReasonRole)
	if op == OpSpawn {
		e = team.Errorf(team.CodeDenied, "only the lead spawns members: %s is %s", c.Name, c.Role).WithReason(team.ReasonRole)
	}
	return e.WithHint("ask the lead: teamctl send " + team.LeadName + " TEXT")
}

// logBypass records that an operator passed a gate.
func (t *Team) logBypass(ctx context.Context, c Caller, gate string) error {
	data, err := json.Marshal(map[string]string{"gate": gate, "role": string(c.Role)})
	if err != nil {
		return err
	}
	_, err = t.as(c).Event(ctx, ledger.Event{Who: c.Name, What: team.EventRoleBypassed, ID: c.Name, Data: data})
	return err
}

// Grants returns in a word whether each role permits an operation: yes, no, by setting, where
// named (in the approval), or logged (an operator's bypass).
func Grants(op Operation) map[team.Role]string {
	words := map[grant]string{yes: "yes", no: "no", policy: "by setting", named: "where named", bypass: "logged"}
	out := make(map[team.Role]string, len(roles()[op]))
	for role, g := range roles()[op] {
		out[role] = words[g]
	}
	return out
}

// ModeHas reports whether a permission mode permits an operation.
func ModeHas(m team.Mode, op Operation) bool { return modeAllows(m, op) }
