package tool

import (
	"context"
	"slices"

	"github.com/teamctl/teamctl/internal/publish"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// modeGate restricts a role's operations in a permission mode; reading is always allowed. A mode
// that is not listed restricts nothing.
var modeGate = map[team.Mode][]Operation{
	// A planner reads, sends messages and makes requests; it acts only after approval of its plan.
	team.ModePlan: {OpSend, OpAsk, OpPlan},
	// A member in delegate mode coordinates existing members and does no work itself: it may use
	// the operations needed for that, with messages of every type. It may not spawn. Permission
	// requests are made in every mode.
	team.ModeDelegate: {OpTeamCreate, OpTeamDelete, OpSend, OpBroadcast, OpDelegate, OpShutdown, OpTaskAdd, OpTaskRetry, OpTaskVerify, OpTaskManage,
		OpAsk, OpAnswer, OpReview},
}

func modeAllows(m team.Mode, op Operation) bool {
	allowed, narrows := modeGate[m]
	return !narrows || slices.Contains(allowed, op)
}

func errMode(c Caller, op Operation) *team.Error {
	e := team.Errorf(team.CodeDenied, "%s is in %s mode and may not %s", c.Name, c.Mode, op).WithReason(team.ReasonMode)
	if c.Mode == team.ModePlan {
		return e.WithHint("submit a plan first: PlanSubmit, or teamctl ask plan")
	}
	if op == OpRule {
		return e.WithHint("ask a member to end with SendMessage and type shutdown_request, or have the mode changed")
	}
	return e.WithHint("assign the work to another member, or change the mode")
}

// May reports whether the caller's role and mode permit an operation, including the team's
// settings. It logs nothing and starts nothing: callers use it to show what is available; the
// operation itself decides.
func (t *Team) May(ctx context.Context, c Caller, op Operation) (bool, error) {
	switch granted(c, op) {
	case yes, bypass:
		return true, nil
	case named:
		for _, kind := range approvalKinds {
			v, err := t.answererOf(ctx, kind)
			if err != nil || v == string(c.Role) {
				return err == nil, err
			}
		}
		return false, nil
	case policy:
		return t.policyAllows(ctx, c, op)
	case no:
	}
	return false, nil
}

// policyAllows is the part of May that depends on the team's settings.
func (t *Team) policyAllows(ctx context.Context, c Caller, op Operation) (bool, error) {
	switch op {
	case OpBroadcast:
		err := t.mayBroadcast(ctx, c)
		if team.IsCode(err, team.CodeDenied) {
			return false, nil
		}
		return err == nil, err
	case OpSpawn:
		most, err := t.settingInt(ctx, SetSpawnDepth, 0)
		if err != nil {
			return false, err
		}
		deep, err := t.depth(ctx, c.Session)
		return err == nil && deep <= most, err
	default:
		d, err := t.delegationOf(ctx, c, "", DelegationForbidden)
		return d != DelegationForbidden, err
	}
}

// MayOutside is May for a caller without a team: only creating a team is decided there.
func MayOutside(c Caller, op Operation) bool { return op == OpTeamCreate && granted(c, op) == yes }

// mayBypass refuses mode bypassPermissions for a member that was not spawned for it.
func mayBypass(m ledger.Member) error {
	if m.Spec.Bypass {
		return nil
	}
	return team.Errorf(team.CodeDenied, "%s was not spawned to skip permissions: the mode is not available to it", m.Name).
		WithReason(team.ReasonBypass).WithHint("teamctl spawn " + m.Name + "-2 --dangerously-skip-permissions starts one to which it is")
}

// personOnly refuses a mode that skips all questions unless the caller is a person.
func personOnly(c Caller, mode team.Mode) error {
	if c.Person {
		return nil
	}
	return team.Errorf(team.CodeDenied, "only a person sets mode %s", mode).WithReason(team.ReasonBypass).
		WithHint("a person sets it at a shell: teamctl mode --help")
}

// SetMode changes the permission mode of a member, or of the lead. adapter.Capabilities.NewMode of
// an agent kind says when a running foreign agent adopts it; its effect on teamctl's own
// operations is immediate. The current mode is not a change.
func (t *Team) SetMode(ctx context.Context, c Caller, name string, mode team.Mode) (ledger.Member, error) {
	if err := t.may(ctx, c, OpMode); err != nil {
		return ledger.Member{}, err
	}
	m, err := t.Member(ctx, name)
	if err != nil {
		return m, err
	}
	if mode, err = team.ParseMode(string(mode)); err != nil {
		return m, err
	}
	if mode == team.ModeBypass {
		if err := mayBypass(m); err != nil {
			return m, err
		}
		if err := personOnly(c, mode); err != nil {
			return m, err
		}
	}
	if !c.Person && m.SessionKey == c.Session {
		return m, team.Errorf(team.CodeDenied, "%s cannot change its own permission mode", c.Name).WithReason(team.ReasonOwnMode)
	}
	if m.Spec.Mode == mode || m.Spec.Mode == "" && mode == team.ModeDefault {
		return m, nil
	}
	if m, err = t.as(c).UpdateMember(ctx, ledger.MemberPatch{SessionKey: m.SessionKey, Mode: &mode}); err != nil {
		return m, err
	}
	return m, publish.Config(ctx, t.Layout, t.Ledger)
}

// handedDown lists the modes that a member inherits from its lead if it is spawned without one:
// those about answering permission requests. Bypassing them must be requested explicitly, and
// planning or delegating is the lead's own way of working.
var handedDown = []team.Mode{team.ModeAcceptEdits, team.ModeDontAsk}

// modeOf returns the permission mode of a new member.
func (t *Team) modeOf(ctx context.Context, asked team.Mode) (team.Mode, error) {
	mode, err := team.ParseMode(string(asked))
	if err != nil || asked != "" {
		return mode, err
	}
	lead, err := t.Ledger.Member(ctx, team.LeadName)
	if err == nil && slices.Contains(handedDown, lead.Spec.Mode) {
		mode = lead.Spec.Mode
	}
	return mode, err
}
