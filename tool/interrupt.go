package tool

import (
	"context"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Interrupt ends the turn that a member's agent is in, by the agent's own means. What
// is known of an agent's turns lags behind them, so one that was last seen idle gets it
// too: its turn may have begun since. A plan that it waits for an answer to is rejected; what
// else the turn has asked for the supervisor withdraws once the turn is seen to be over.
// The built-in worker has tasks and no turns; the signal that stands for Ctrl-C would
// end the worker itself, so it is refused.
func (t *Team) Interrupt(ctx context.Context, c Caller, name string) error {
	if err := t.may(ctx, c, OpRule); err != nil {
		return err
	}
	m, err := t.Member(ctx, name)
	if err != nil {
		return err
	}
	if team.KindOf(m.Spec.Agent).Worker {
		e := team.Errorf(team.CodeConflict, "%s is a built-in worker: it has no turn that could be ended alone", m.Name).WithReason("no_turns")
		tasks, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{Status: team.TaskInProgress, Owner: m.SessionKey, Limit: 1})
		if err != nil || len(tasks) == 0 {
			return e.WithHint("teamctl stop " + m.Name + " ends it")
		}
		return e.WithHint("teamctl task assign " + tasks[0].ID + " --nobody takes its task away")
	}
	_, err = supervise(ctx, t, func(s Supervisor) (struct{}, error) { return struct{}{}, s.InterruptMember(ctx, m.Name) })
	if err != nil {
		return err
	}
	return t.rejectPlan(ctx, c, m)
}

// rejectPlan ends the wait for a member's plan: the turn that submitted it is over, and
// what nobody waits for must not keep the next one out (R158, U26). The member is told
// nothing, which would begin another turn.
func (t *Team) rejectPlan(ctx context.Context, c Caller, m ledger.Member) error {
	plans, err := t.Ledger.Approvals(ctx, ledger.ApprovalFilter{State: ledger.ApprovalPending, Kind: ledger.ApprovePlan, Session: m.SessionKey})
	if err != nil {
		return err
	}
	for _, p := range plans {
		_, err := t.Ledger.Answer(ctx, ledger.AnswerIn{ID: p.ID, By: c.Name, Feedback: "its turn was interrupted"})
		if err != nil && team.ReasonOf(err) != ledger.ReasonAlreadyResolved && team.ReasonOf(err) != ledger.ReasonExpired {
			return err
		}
	}
	return nil
}
