package tool

import (
	"context"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Interrupt interrupts the current turn of a member's agent, by the agent's own means. Knowledge
// of an agent's turns lags behind, so an agent last seen idle is interrupted as well: its turn may
// have begun since. A pending plan is rejected; the supervisor withdraws the turn's other requests
// once it sees that the turn is over. A turn of the built-in worker is a task: the task is
// cancelled, which ends its command (the signal that stands for Ctrl-C would end the worker
// itself).
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
	if err == nil {
		err = t.noteRequest(ctx, c, "interrupt", m.Name)
	}
	if err != nil {
		return err
	}
	return t.rejectPlan(ctx, c, m)
}

// interruptWorker cancels the task that a built-in worker has claimed. The worker sees that in the
// ledger, ends the command and continues with its next task. A submitted task, in verification or
// review, is not cancelled.
func (t *Team) interruptWorker(ctx context.Context, c Caller, m ledger.Member) error {
	tasks, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{Owner: m.SessionKey, OpenOnly: true})
	if err != nil {
		return err
	}
	for _, task := range tasks {
		held := task.Status == team.TaskClaimed || task.Status == team.TaskInProgress
		if held && task.Review == 0 && task.Verification == 0 {
			_, err := t.as(c).CancelClaim(ctx, ledger.TaskRef{ID: task.ID, Owner: m.SessionKey, Attempt: task.Attempt}, "interrupted")
			if err == nil {
				err = t.noteRequest(ctx, c, "interrupt", m.Name)
			}
			return err
		}
	}
	return team.Errorf(team.CodeConflict, "%s runs no task", m.Name).WithReason(team.ReasonNoTask).WithHint("teamctl show " + m.Name)
}

// rejectPlan rejects a member's pending plan: the turn that submitted it is over, and an abandoned
// plan must not block the next one. The member is not notified, since that would begin another
// turn.
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
