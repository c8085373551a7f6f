package ledger

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/team"
)

// ReleaseHold is how long a task is held back after a release by someone other than
// its owner: a waiting worker would otherwise reclaim it before it could be changed,
// assigned or deleted. A claim by id, except by the previous owner, lifts the hold.
const ReleaseHold = 5 * time.Second

const (
	sqlTaskHold = `UPDATE tasks SET notBefore = ? WHERE id = ?`
	// The previous owner if a task is held back by its release. Such an event is recent:
	// the scan from the end is short.
	sqlHeldBy = `SELECT coalesce(json_extract(data, '$.owner'), '') FROM (
		SELECT what, data FROM events WHERE id = ? AND what IN ('task.released', 'task.retrying') ORDER BY seq DESC LIMIT 1
		) WHERE what = 'task.released'`
)

// liftHold makes a task that is held back after its release ready for a claim by
// id, and reports whether it did.
func (t *tx) liftHold(in ClaimIn, name string) (bool, error) {
	task, err := t.task(in.ID)
	if err != nil || task.Status != team.TaskPending || task.NotBefore <= t.now || len(task.BlockedBy) > 0 || task.Owner != "" && task.Owner != in.Owner {
		return false, nil //nolint:nilerr // whyNot reports it
	}
	from, held, err := value[string](t, sqlHeldBy, in.ID)
	if err != nil || !held || from == name {
		return false, err
	}
	_, err = t.exec(sqlTaskHold, 0, in.ID)
	return err == nil, err
}

type cancelArgs struct {
	ID     string   `json:"id"`
	Reason string   `json:"reason,omitempty"`
	Claim  *TaskRef `json:"claim,omitempty"` // only this claim
}

// Cancel ends an unfinished task, whether or not it is claimed, as failed with
// the reason; no retry follows. Later reports of its owner are refused.
// CodeConflict (already_resolved) if it is completed or failed.
func (l *Ledger) Cancel(ctx context.Context, id, reason string) (Task, error) {
	return write[Task](ctx, l, opTaskCancel, cancelArgs{ID: id, Reason: reason})
}

// CancelClaim is Cancel for one claim of a task: CodeConflict if the task has been
// released, claimed again or handed in since.
func (l *Ledger) CancelClaim(ctx context.Context, ref TaskRef, reason string) (Task, error) {
	return write[Task](ctx, l, opTaskCancel, cancelArgs{ref.ID, reason, &ref})
}

func cancelTask(t *tx, a cancelArgs) (Task, error) {
	task, err := t.task(a.ID)
	if err == nil && a.Claim != nil {
		_, err = t.fenced(*a.Claim)
	}
	if err != nil {
		return task, err
	}
	by := orDefault(t.who, team.SystemName)
	switch task.Status {
	case team.TaskCompleted, team.TaskFailed:
		return task, team.Errorf(team.CodeConflict, "task %s is %s already", task.ID, task.Status).WithReason(team.ReasonAlreadyResolved)
	case team.TaskClaimed, team.TaskInProgress:
		if err := t.free(task, by, "canceled by "+by); err != nil {
			return task, err
		}
	case team.TaskPending:
	}
	text := "canceled by " + by
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	task.OwnerName = by // of the event
	if err := t.failForGood(task, Result{Error: text}); err != nil {
		return task, err
	}
	return t.task(a.ID)
}
