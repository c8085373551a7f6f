package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Delegation is the policy for delegating work.
type Delegation string

// Delegation policies.
const (
	DelegationAuto      Delegation = "auto"              // no gate
	DelegationApproval  Delegation = "approval_required" // requires approval
	DelegationForbidden Delegation = "forbidden"         // refused outright
)

// ParseDelegation parses a policy; there is no default, since that depends on the role.
func ParseDelegation(s string) (Delegation, error) {
	switch d := Delegation(s); d {
	case DelegationAuto, DelegationApproval, DelegationForbidden:
		return d, nil
	}
	return "", team.Errorf(team.CodeInvalid, "unknown delegation policy %q", s).WithHint("auto, approval_required or forbidden")
}

// strict orders policies by strictness.
var strict = map[Delegation]int{DelegationAuto: 0, DelegationApproval: 1, DelegationForbidden: 2}

// delegationOf returns the policy that applies to a caller: the member's, else the team's, else
// otherwise. The task named in the call can only tighten it, and so can the tasks that the caller
// is working on, also if the call names another task or none.
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
	var tasks []ledger.Task
	if c.Session != "" {
		mine, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{Owner: c.Session, OpenOnly: true})
		if err != nil {
			return "", err
		}
		tasks = slices.DeleteFunc(mine, func(x ledger.Task) bool { return x.Status == team.TaskPending })
	}
	if task != "" {
		named, err := t.Ledger.Task(ctx, task)
		if err != nil {
			return "", err
		}
		tasks = append(tasks, named)
	}
	for _, x := range tasks {
		of, err := delegationOfTask(x)
		if err != nil {
			return "", err
		}
		if strict[of] > strict[d] {
			d = of
		}
	}
	return d, nil
}

// delegationKey is the key of the policy in a task's metadata.
const delegationKey = "delegationPolicy"

// delegationOfTask returns the policy in a task's metadata; auto if there is none.
func delegationOfTask(task ledger.Task) (Delegation, error) {
	var meta map[string]json.RawMessage
	if len(task.Metadata) > 0 && json.Unmarshal(task.Metadata, &meta) != nil {
		return "", team.Errorf(team.CodeInvalid, "the metadata of task %s is not an object", task.ID)
	}
	raw, said := meta[delegationKey]
	if !said {
		return DelegationAuto, nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return "", team.Errorf(team.CodeInvalid, "metadata.%s of task %s is not a string", delegationKey, task.ID)
	}
	if text == "" {
		return DelegationAuto, nil
	}
	d, err := ParseDelegation(text)
	if err != nil {
		return "", fmt.Errorf("metadata.%s of task %s: %w", delegationKey, task.ID, err)
	}
	return d, nil
}

// setsDelegation reports whether a change of a task's metadata affects its policy. Only members
// that manage tasks may change that, not the owner that it binds.
func setsDelegation(patch json.RawMessage) bool {
	var keys map[string]json.RawMessage
	if json.Unmarshal(patch, &keys) != nil {
		return false // the write itself refuses it
	}
	_, ok := keys[delegationKey]
	return ok
}

// mayDelegate checks whether a caller may delegate work of a task (or none). It returns true if
// that needs approval. By default leaders may and others may not; a set policy takes precedence. A
// leader never needs approval, but is bound by forbidden.
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
			WithReason(team.ReasonDelegation).WithHint("ask the lead: teamctl send " + team.LeadName + " TEXT")
	case d == DelegationApproval && g == policy:
		return true, nil
	}
	return false, nil
}

// depth returns a member's distance from the lead in spawns: 1 for members spawned by the lead.
func (t *Team) depth(ctx context.Context, session string) (int, error) {
	seen := map[string]bool{}
	for session != "" && !seen[session] {
		m, err := t.Ledger.MemberBySession(ctx, session)
		if team.IsCode(err, team.CodeNotFound) || err == nil && m.Name == team.LeadName {
			break
		}
		if err != nil {
			return 0, err
		}
		seen[session] = true
		session = m.Spec.SpawnedBy
	}
	return len(seen), nil
}

// maySpawn checks whether a caller may spawn; true means that it needs approval.
func (t *Team) maySpawn(ctx context.Context, c Caller, in SpawnIn) (approval bool, err error) {
	if c.Person {
		return false, nil
	}
	switch m, err := t.Ledger.MemberBySession(ctx, c.Session); {
	case team.IsCode(err, team.CodeNotFound): // a caller that is not on the roster: its role decides
	case err != nil:
		return false, err
	case m.PaneID == team.PaneInProcess:
		return false, team.Errorf(team.CodeDenied, "In-process teammates cannot spawn other teammates.").WithReason(team.ReasonInProcess).
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
	// No member may create one with more rights than its own. A leader's mode without its flag is
	// refused later, as invalid input.
	role := in.Role
	skips := in.Mode == team.ModeBypass && (in.Bypass || c.Role != team.RoleLeader)
	if role == team.RoleOperator || role == team.RoleLeader && c.Role != team.RoleLeader || skips {
		return false, team.Errorf(team.CodeDenied, "%s (%s) may not spawn a member with more rights than its own", c.Name, c.Role).
			WithReason(team.ReasonRole).WithHint("have the person run it: teamctl spawn " + team.ShellQuote(in.Name))
	}
	return t.mayDelegate(ctx, c, OpSpawn, "")
}
