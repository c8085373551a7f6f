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
// A turn of the built-in worker is a task: the task is canceled, which ends its command
// (the signal that stands for Ctrl-C would end the worker itself).
func (t *Team) Interrupt(ctx context.Context, c Caller, name string) error {
	if err := t.may(ctx, c, OpRule); err != nil {
		return err
	}
	m, err := t.Member(ctx, name)
	if err != nil {
		return err
	}
	if team.KindOf(m.Spec.Agent).Worker {
		return t.interruptWorker(ctx, c, m)
	}
	if team.KindOf(m.Spec.Agent).Sessions {
		err = t.interruptTurns(ctx, c, m)
	} else {
		_, err = supervise(ctx, t, func(s Supervisor) (struct{}, error) { return struct{}{}, s.InterruptMember(ctx, m.Name) })
	}
	if err != nil {
		return err
	}
	return t.rejectPlan(ctx, c, m)
}

// interruptWorker cancels the task that a built-in worker has claimed. The worker sees
// that in the ledger, ends the command and goes on with its next task. A task that it
// has handed in, for verification or review, is no longer in its hands.
func (t *Team) interruptWorker(ctx context.Context, c Caller, m ledger.Member) error {
	tasks, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{Owner: m.SessionKey, OpenOnly: true})
	if err != nil {
		return err
	}
	for _, task := range tasks {
		held := task.Status == team.TaskClaimed || task.Status == team.TaskInProgress
		if held && task.Review == 0 && task.Verification == 0 {
			_, err := t.as(c).CancelClaim(ctx, ledger.TaskRef{ID: task.ID, Owner: m.SessionKey, Attempt: task.Attempt}, "interrupted")
			return err
		}
	}
	return team.Errorf(team.CodeConflict, "%s runs no task", m.Name).WithReason(team.ReasonNoTask).WithHint("teamctl show " + m.Name)
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
		if err != nil && team.ReasonOf(err) != team.ReasonAlreadyResolved && team.ReasonOf(err) != team.ReasonExpired {
			return err
		}
	}
	return nil
}
