package ledger

import (
	"context"

	"github.com/teamctl/teamctl/team"
)

type reassignArgs struct {
	ID    string    `json:"id"`
	Owner string    `json:"owner"` // session key; empty: any member that is ready
	By    string    `json:"by"`
	Tell  *postArgs `json:"tell,omitempty"`
}

// reassigned is the task, and the message to its new owner. A supervisor of an
// older version returns only the task.
type reassigned struct {
	Task
	Told *posted `json:"told,omitempty"`
}

// Reassign assigns an unfinished task to another member, or to no one in
// particular. Its present owner loses it: its later writes are refused with
// not_owner. Errors: CodeNotFound task_not_found and member_not_found,
// CodeConflict already_resolved and member_removed.
func (l *Ledger) Reassign(ctx context.Context, id, owner, by string) (Task, error) {
	return write[Task](ctx, l, opTaskReassign, reassignArgs{ID: id, Owner: owner, By: by})
}

// Assign is Reassign to a member with a message to it, in one transaction: a
// task never has a new owner that was not notified. The caller mails the
// message. Errors are those of Reassign and of Post; after an error nothing has
// changed.
func (l *Ledger) Assign(ctx context.Context, id, owner, by string, tell NewMessage) (Task, Message, []Delivery, error) {
	a := reassignArgs{id, owner, by, &postArgs{tell, team.NewUUID()}}
	out, err := write[reassigned](ctx, l, opTaskReassign, a)
	if err != nil {
		return out.Task, Message{}, nil, err
	}
	if out.Told == nil {
		m, ds, err := l.Post(ctx, tell)
		return out.Task, m, ds, err
	}
	return out.Task, out.Told.Message, out.Told.Deliveries, nil
}

func reassignTask(t *tx, a reassignArgs) (out reassigned, err error) {
	if out.Task, err = t.reassign(a); err != nil || a.Tell == nil {
		return out, err
	}
	told, err := postMessage(t, *a.Tell)
	out.Told = &told
	return out, err
}

func (t *tx) reassign(a reassignArgs) (Task, error) {
	task, err := t.task(a.ID)
	if err != nil {
		return task, err
	}
	by := orDefault(a.By, t.who)
	switch task.Status {
	case team.TaskCompleted, team.TaskFailed:
		return task, team.Errorf(team.CodeConflict, "task %s is %s already", task.ID, task.Status).WithReason(team.ReasonAlreadyResolved).
			WithHint(map[team.TaskStatus]string{team.TaskFailed: "teamctl task retry " + task.ID, team.TaskCompleted: "teamctl task show " + task.ID}[task.Status])
	case team.TaskClaimed, team.TaskInProgress:
		if err := t.free(task, by, "reassigned by "+by); err != nil {
			return task, err
		}
	case team.TaskPending: // the new owner may take it at once
		if _, err := t.exec(sqlTaskHold, 0, task.ID); err != nil {
			return task, err
		}
	}
	return updateTask(t, TaskPatch{ID: a.ID, Owner: &a.Owner, By: by})
}
