package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/teamctl/teamctl/team"
)

const sqlTaskSet = `UPDATE tasks SET subject = ?, description = ?, activeForm = ?, priority = ?, verify = ?, verifyBy = ?,
	metadata = ?, owner = ?, ownerName = ? WHERE id = ?`

// TaskPatch changes those fields of a task that are set.
type TaskPatch struct {
	ID          string          `json:"id"`
	By          string          `json:"by,omitempty"` // name of the requester
	Subject     *string         `json:"subject,omitempty"`
	Description *string         `json:"description,omitempty"`
	ActiveForm  *string         `json:"activeForm,omitempty"`
	Priority    *int            `json:"priority,omitempty"`
	Verify      *string         `json:"verify,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"` // its keys replace those of the task; null deletes one
	Owner       *string         `json:"owner,omitempty"`    // session key: only it may claim the pending task; "" removes the assignment
}

// UpdateTask changes a task and returns it. Errors: CodeNotFound
// (task_not_found, member_not_found), CodeConflict already_claimed (only a
// pending task can be assigned), CodeInvalid and CodeLimit as CreateTasks.
func (l *Ledger) UpdateTask(ctx context.Context, p TaskPatch) (Task, error) {
	return write[Task](ctx, l, opTaskUpdate, p)
}

func updateTask(t *tx, p TaskPatch) (Task, error) {
	task, err := t.task(p.ID)
	if err != nil {
		return task, err
	}
	before := task
	set(&task.Subject, p.Subject)
	set(&task.Description, p.Description)
	set(&task.ActiveForm, p.ActiveForm)
	set(&task.Priority, p.Priority)
	if p.Verify != nil && *p.Verify != task.Verify {
		if task.Verify, task.VerifyBy = *p.Verify, orDefault(p.By, t.who); task.Verify == "" {
			task.VerifyBy = ""
		}
	}
	if strings.TrimSpace(task.Subject) == "" {
		return task, team.Errorf(team.CodeInvalid, "a task needs a subject")
	}
	if err := checkTexts(task.Subject, task.Description, task.ActiveForm); err != nil {
		return task, err
	}
	if task.Metadata, err = mergeMetadata(task.Metadata, p.Metadata); err != nil {
		return task, err
	}
	what := team.EventTaskUpdated
	if p.Owner != nil && *p.Owner != task.Owner {
		if err := t.assign(&task, *p.Owner); err != nil {
			return task, err
		}
		what = team.EventTaskAssigned
	}
	if _, err := t.exec(sqlTaskSet, task.Subject, task.Description, orNull(task.ActiveForm), task.Priority, task.Verify, task.VerifyBy,
		jsonOrNull(task.Metadata), orNull(task.Owner), orNull(task.OwnerName), task.ID); err != nil {
		return task, err
	}
	was, is := changes(before, task)
	if len(is) == 0 {
		return task, nil
	}
	err = t.event(Event{Who: orDefault(p.By, t.who), What: what, ID: task.ID, Before: mustJSON(was), After: mustJSON(is)})
	if err != nil || task.Verification == 0 || task.Verify == before.Verify {
		return task, err
	}
	if err := t.verifyAgain(task); err != nil {
		return task, err
	}
	return t.task(task.ID)
}

// changes returns the old and new values of the fields that differ.
func changes(was, is Task) (before, after map[string]any) {
	before, after = map[string]any{}, map[string]any{}
	put := func(field string, a, b any, differ bool) {
		if differ {
			before[field], after[field] = a, b
		}
	}
	put("subject", was.Subject, is.Subject, was.Subject != is.Subject)
	put("description", was.Description, is.Description, was.Description != is.Description)
	put("activeForm", was.ActiveForm, is.ActiveForm, was.ActiveForm != is.ActiveForm)
	put("priority", was.Priority, is.Priority, was.Priority != is.Priority)
	put("verify", was.Verify, is.Verify, was.Verify != is.Verify)
	put("verifyBy", was.VerifyBy, is.VerifyBy, was.VerifyBy != is.VerifyBy)
	put("metadata", was.Metadata, is.Metadata, !bytes.Equal(was.Metadata, is.Metadata))
	put("owner", was.OwnerName, is.OwnerName, was.Owner != is.Owner)
	return before, after
}

func (t *tx) assign(task *Task, owner string) error {
	if task.Status != team.TaskPending {
		return team.Errorf(team.CodeConflict, "task %s is %s: only a pending task can be assigned", task.ID, task.Status).
			WithReason(team.ReasonAlreadyClaimed)
	}
	task.Owner, task.OwnerName = owner, ""
	if owner == "" {
		return nil
	}
	m, err := t.memberBySession(owner)
	if err != nil {
		return err
	}
	if m.RemovedAt != 0 {
		return team.Errorf(team.CodeConflict, "%s has left the team", m.Name).WithReason(team.ReasonMemberRemoved)
	}
	task.OwnerName = m.Name
	return nil
}

func mergeMetadata(old, patch json.RawMessage) (json.RawMessage, error) {
	changes, err := object("the metadata of a task", patch)
	if err != nil || len(changes) == 0 {
		return old, err
	}
	all, err := object("the metadata of a task", old)
	if err != nil {
		return old, err
	}
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	for k, v := range changes {
		if string(v) == "null" {
			delete(all, k)
		} else {
			all[k] = v
		}
	}
	return json.RawMessage(mustJSON(all)), nil
}

func set[T any](field *T, v *T) {
	if v != nil {
		*field = *v
	}
}
