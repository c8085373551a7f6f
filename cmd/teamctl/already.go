package main

import (
	"context"
	"slices"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// A state that already holds is no error: a command that is run twice gives the same result, with
// an outcome that begins with already_.

// settledTask is the result of a verb that changes one task.
type settledTask struct {
	ledger.Task
	Outcome string `json:"outcome,omitempty"` // already_completed, already_failed or already_pending
}

// settledAs maps a verb of settle to the task's state after it.
var settledAs = map[string]team.TaskStatus{
	"completed": team.TaskCompleted, "failed": team.TaskFailed, "released": team.TaskPending, "ready again:": team.TaskPending,
	"canceled": team.TaskFailed,
}

// alreadySettled forgives the refusal of a verb whose task is as it would be then:
// by the caller's own doing, or on the board for everybody. An attempt that was
// named has to be the one.
func alreadySettled(ctx context.Context, tm *tool.Team, c tool.Caller, id, verb string, attempt int, err error) (settledTask, error) {
	if !team.IsCode(err, team.CodeConflict) {
		return settledTask{}, err
	}
	t, rerr := tm.Ledger.Task(ctx, id)
	if rerr != nil || t.Status != settledAs[verb] || attempt != 0 && attempt != t.Attempt {
		return settledTask{}, err
	}
	if t.Status != team.TaskPending && !c.Person && t.Owner != c.Session {
		return settledTask{}, err
	}
	return settledTask{t, "already_" + string(t.Status)}, nil
}

// answeredApproval is the result of an answer.
type answeredApproval struct {
	ledger.Approval
	Outcome  string    `json:"outcome,omitempty"`        // already_approved or already_rejected
	Mode     team.Mode `json:"permissionMode,omitempty"` // of an approved plan
	ModeFrom string    `json:"modeFrom,omitempty"`       // when the running agent follows
}

// alreadyAnswered forgives an answer that was given in the same way before.
func alreadyAnswered(ctx context.Context, t *tool.Team, in tool.AnswerIn, err error) (answeredApproval, error) {
	if team.ReasonOf(err) != team.ReasonAlreadyResolved {
		return answeredApproval{}, err
	}
	want := ledger.ApprovalRejected
	if in.Approve {
		want = ledger.ApprovalApproved
	}
	x, rerr := t.Ledger.Approval(ctx, in.ID)
	if rerr != nil || x.State != want {
		return answeredApproval{}, err
	}
	return answeredApproval{Approval: x, Outcome: "already_" + string(x.State)}, nil
}

// ruledMember is a member in the result of start, restart, pause and resume.
type ruledMember struct {
	ledger.Member
	Outcome string `json:"outcome"` // started, restarted, paused, resumed, already_running or already_paused
}

// outcomes compares members with what they were before a verb.
func outcomes(verb string, before map[string]ledger.Member, after []ledger.Member) []ruledMember {
	out := make([]ruledMember, len(after))
	for i, m := range after {
		b := before[m.SessionKey]
		paused := b.Reason == state.PausedReason
		out[i] = ruledMember{m, verb}
		switch {
		case verb == "started" && b.Observed == team.Running && b.Generation == m.Generation,
			verb == "resumed" && b.Observed == team.Running && !paused:
			out[i].Outcome = "already_running"
		case verb == "paused" && paused:
			out[i].Outcome = "already_paused"
		}
	}
	return out
}

// removedService is the result of service uninstall.
type removedService struct {
	tool.Service
	Outcome string `json:"outcome"` // removed or already_removed
}

// sinkList are the sinks, after a change of them or not.
type sinkList struct {
	Sinks   []string `json:"sinks"`
	Outcome string   `json:"outcome,omitempty"` // already_there or already_gone
}

// hiddenMember is the result of hide and show.
type hiddenMember struct {
	Member  string `json:"member"`
	Hidden  bool   `json:"hidden"`
	Outcome string `json:"outcome"` // hidden, shown, already_hidden or already_shown
}

// isHidden reports whether the pane that a member is in is out of sight.
func isHidden(ctx context.Context, t *tool.Team, name string) (bool, error) {
	pane, err := t.Pane(ctx, name)
	if err != nil {
		return false, err
	}
	row, err := t.Ledger.Team(ctx)
	return slices.Contains(row.Hidden, pane.PaneID), err
}

// closedRuns is the result of run close.
type closedRuns struct {
	ledger.RunsClosed
	Outcome string `json:"outcome,omitempty"` // already_closed
}

// alreadyClosed forgives the closing of a run that is closed.
func alreadyClosed(ctx context.Context, t *tool.Team, err error) (closedRuns, error) {
	if team.ReasonOf(err) != team.ReasonRunClosed {
		return closedRuns{}, err
	}
	now, err := t.Ledger.CurrentRun(ctx)
	return closedRuns{ledger.RunsClosed{Closed: []int64{}, Current: now}, "already_closed"}, err
}
