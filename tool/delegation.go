package tool

import (
	"context"
	"encoding/json"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Delegation says whether work may be handed on.
type Delegation string

// Delegation policies (document 004).
const (
	DelegationAuto      Delegation = "auto"              // no gate
	DelegationApproval  Delegation = "approval_required" // somebody approves it first
	DelegationForbidden Delegation = "forbidden"         // refused outright
)

// ParseDelegation checks a policy; there is no default: it depends on the role.
func ParseDelegation(s string) (Delegation, error) {
	switch d := Delegation(s); d {
	case DelegationAuto, DelegationApproval, DelegationForbidden:
		return d, nil
	}
	return "", team.Errorf(team.CodeInvalid, "unknown delegation policy %q", s).WithHint("auto, approval_required or forbidden")
}

// ReasonDelegation is the reason of a delegation that is refused.
const ReasonDelegation = "delegation_forbidden"

// strict is how much a policy forbids.
var strict = map[Delegation]int{DelegationAuto: 0, DelegationApproval: 1, DelegationForbidden: 2}

// delegationOf is the policy that holds for a caller: what is set for the member,
// else for the team, else otherwise. What the task says can only tighten it:
// members write the metadata of tasks themselves.
func (t *Team) delegationOf(ctx context.Context, c Caller, task string, otherwise Delegation) (Delegation, error) {
	d := otherwise
	for _, name := range []string{SetDelegation, SetDelegationOf + c.Name} {
		v, err := t.setting(ctx, name)
		if err != nil {
			return "", err
		}
		if v != "" {
			d = Delegation(v)
		}
	}
	if task == "" {
		return d, nil
	}
	row, err := t.Ledger.Task(ctx, task)
	if err != nil {
		return "", err
	}
	var meta struct {
		Policy string `json:"delegationPolicy"`
	}
	if len(row.Metadata) > 0 && json.Unmarshal(row.Metadata, &meta) != nil {
		return "", team.Errorf(team.CodeInvalid, "metadata.delegationPolicy of task %s is no text", task)
	}
	if meta.Policy != "" {
		of, err := ParseDelegation(meta.Policy)
		if err != nil {
			return "", err
		}
		if strict[of] > strict[d] {
			d = of
		}
	}
	return d, nil
}

// mayDelegate decides whether a caller may hand on work of a task (or none). It
// returns true when somebody has to approve it first. By itself a leader may and
// others may not; what is set goes before. A leader needs no approval, but forbidden
// is forbidden.
func (t *Team) mayDelegate(ctx context.Context, c Caller, op Operation, task string) (approval bool, err error) {
	if c.Person {
		return false, nil
	}
	g := granted(c, op)
	if g == no {
		return false, errRole(c, op)
	}
	otherwise := DelegationAuto
	if g == policy && op == OpDelegate {
		otherwise = DelegationForbidden
	}
	d, err := t.delegationOf(ctx, c, task, otherwise)
	if err != nil {
		return false, err
	}
	switch {
	case g == bypass:
		if d == DelegationAuto && op != OpDelegate {
			return false, t.logBypass(ctx, c, string(op))
		}
		return false, t.logBypass(ctx, c, string(op)+" (delegationPolicy="+string(d)+")")
	case d == DelegationForbidden:
		return false, team.Errorf(team.CodeDenied, "Delegation is forbidden by node configuration (delegationPolicy=forbidden).").
			WithReason(ReasonDelegation).WithHint("ask the lead: teamctl send " + team.LeadName + " TEXT")
	case d == DelegationApproval && g == policy:
		return true, nil
	}
	return false, nil
}

// depth is how many spawns a member is away from the lead: 1 for those that the
// lead has spawned.
func (t *Team) depth(ctx context.Context, session string) (int, error) {
	all, err := t.Ledger.Members(ctx, true)
	if err != nil {
		return 0, err
	}
	parents := make(map[string]ledger.Member, len(all))
	for _, m := range all {
		parents[m.SessionKey] = m
	}
	n := 0
	for m, ok := parents[session]; ok && m.Name != team.LeadName && n <= len(all); m, ok = parents[m.Spec.SpawnedBy] {
		n++
	}
	return n, nil
}

// maySpawn decides whether a caller may spawn; true: when it is approved.
func (t *Team) maySpawn(ctx context.Context, c Caller, in SpawnIn) (approval bool, err error) {
	if c.Person {
		return false, nil
	}
	switch m, err := t.Ledger.MemberBySession(ctx, c.Session); {
	case team.IsCode(err, team.CodeNotFound): // a caller without a place on the roster: its role decides
	case err != nil:
		return false, err
	case m.PaneID == team.PaneInProcess:
		return false, team.Errorf(team.CodeDenied, "In-process teammates cannot spawn other teammates.").WithReason("in_process").
			WithHint("ask the lead: teamctl send " + team.LeadName + " TEXT")
	}
	if granted(c, OpSpawn) == policy {
		most, err := t.settingInt(ctx, SetSpawnDepth, 0)
		if err != nil {
			return false, err
		}
		deep, err := t.depth(ctx, c.Session)
		if err != nil {
			return false, err
		}
		if deep > most {
			return false, errRole(c, OpSpawn)
		}
	}
	// Nobody makes another more than it is itself.
	role, mode := team.Role(in.Role), team.Mode(in.Mode)
	if role == team.RoleOperator || role == team.RoleLeader && c.Role != team.RoleLeader ||
		mode == team.ModeBypass && c.Role != team.RoleLeader && c.Role != team.RoleOperator {
		return false, team.Errorf(team.CodeDenied, "%s (%s) may not spawn a member with more rights than its own", c.Name, c.Role).
			WithReason("role").WithHint("ask the person")
	}
	return t.mayDelegate(ctx, c, OpSpawn, "")
}
