package ledger

import (
	"context"

	"github.com/teamctl/teamctl/team"
)

type reassignArgs struct {
	ID    string `json:"id"`
	Owner string `json:"owner"` // session key; empty: whoever is ready
	By    string `json:"by"`
}

// Reassign gives a task that is not done to another member, or to whoever is ready.
// Who holds it loses it: its later writes are refused with not_owner. Errors:
// CodeNotFound task_not_found and member_not_found, CodeConflict already_resolved
// and member_removed.
func (l *Ledger) Reassign(ctx context.Context, id, owner, by string) (Task, error) {
	return write[Task](ctx, l, opTaskReassign, reassignArgs{id, owner, by})
}

func reassignTask(t *tx, a reassignArgs) (Task, error) {
	task, err := t.task(a.ID)
	if err != nil {
		return task, err
	}
	by := orDefault(a.By, t.who)
	switch task.Status {
	case team.TaskCompleted, team.TaskFailed:
		return task, team.Errorf(team.CodeConflict, "task %s is %s already", task.ID, task.Status).WithReason(ReasonAlreadyResolved)
	case team.TaskClaimed, team.TaskInProgress:
		if err := t.free(task, by, "reassigned by "+by); err != nil {
			return task, err
		}
	case team.TaskPending:
	}
	return updateTask(t, TaskPatch{ID: a.ID, Owner: &a.Owner, By: by})
}
