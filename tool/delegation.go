package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

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

// strict is how much a policy forbids.
var strict = map[Delegation]int{DelegationAuto: 0, DelegationApproval: 1, DelegationForbidden: 2}

// delegationOf is the policy that holds for a caller: what is set for the member,
// else for the team, else otherwise. The task that the work is of can only tighten it,
// and so can those that the caller works on: whoever names no task, or another one,
// works on them all the same.
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

// delegationKey is the key of a task's metadata that says its policy.
const delegationKey = "delegationPolicy"

// delegationOfTask is what the metadata of a task says; auto where it says nothing.
func delegationOfTask(task ledger.Task) (Delegation, error) {
	var meta map[string]json.RawMessage
	if len(task.Metadata) > 0 && json.Unmarshal(task.Metadata, &meta) != nil {
		return "", team.Errorf(team.CodeInvalid, "the metadata of task %s is no object", task.ID)
	}
	raw, said := meta[delegationKey]
	if !said {
		return DelegationAuto, nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return "", team.Errorf(team.CodeInvalid, "metadata.%s of task %s is no text", delegationKey, task.ID)
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

// setsDelegation reports whether a change of a task's metadata touches its policy: that
// is for who manages tasks, not for the owner that it binds.
func setsDelegation(patch json.RawMessage) bool {
	var keys map[string]json.RawMessage
	if json.Unmarshal(patch, &keys) != nil {
		return false // refused where it is written
	}
	_, ok := keys[delegationKey]
	return ok
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
			WithReason(team.ReasonDelegation).WithHint("ask the lead: teamctl send " + team.LeadName + " TEXT")
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
	// Nobody makes another more than it is itself. A leader's mode without its flag is
	// refused later, as an input that is not valid.
	role := in.Role
	skips := in.Mode == team.ModeBypass && (in.Bypass || c.Role != team.RoleLeader)
	if role == team.RoleOperator || role == team.RoleLeader && c.Role != team.RoleLeader || skips {
		return false, team.Errorf(team.CodeDenied, "%s (%s) may not spawn a member with more rights than its own", c.Name, c.Role).
			WithReason(team.ReasonRole).WithHint("have the person run it: teamctl spawn " + team.ShellQuote(in.Name))
	}
	return t.mayDelegate(ctx, c, OpSpawn, "")
}
