package tool

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TaskUpdateIn has the fields of a task to change.
type TaskUpdateIn struct {
	TaskID          string           `json:"task_id"`
	Subject         *string          `json:"subject,omitempty"`
	Description     *string          `json:"description,omitempty"`
	ActiveForm      *string          `json:"activeForm,omitempty"`
	Priority        *int             `json:"priority,omitempty"`
	Verify          *string          `json:"verify,omitempty"`
	Metadata        json.RawMessage  `json:"metadata,omitempty"` // keys replace those of the task; null deletes one
	Owner           *string          `json:"owner,omitempty"`    // new owner; "" means any ready member
	AddDependsOn    []string         `json:"addDependsOn,omitempty"`
	RemoveDependsOn []string         `json:"removeDependsOn,omitempty"`
	Status          *team.TaskStatus `json:"status,omitempty"` // in_progress, completed, failed, or pending to give it back
}

// onlyStatus reports that nothing else is to be changed.
func (in TaskUpdateIn) onlyStatus() bool {
	return in.Subject == nil && in.Description == nil && in.ActiveForm == nil && in.Priority == nil && in.Verify == nil && in.Owner == nil &&
		len(in.Metadata)+len(in.AddDependsOn)+len(in.RemoveDependsOn) == 0
}

// TaskUpdate changes a task. Its owner may change its content and status; only the lead may change
// its owner, dependencies, verify command and delegationPolicy. Each part is a transaction of its
// own, in the order fields, dependencies, owner, status; the first refusal ends the update. A new
// owner is notified by a task_assignment.
func (t *Team) TaskUpdate(ctx context.Context, c Caller, in TaskUpdateIn) (TaskDone, error) {
	task, err := t.Ledger.Task(ctx, in.TaskID)
	if err != nil {
		return TaskDone{Task: task}, err
	}
	if in.Owner != nil || len(in.AddDependsOn)+len(in.RemoveDependsOn) > 0 || task.Owner == "" || task.Owner != c.Session ||
		setsDelegation(in.Metadata) {
		if err := t.may(ctx, c, OpTaskManage); err != nil {
			return TaskDone{Task: task}, err
		}
	} else if err := t.may(ctx, c, OpTaskWork); err != nil {
		return TaskDone{Task: task}, err
	}
	if in.Verify != nil && *in.Verify != task.Verify {
		if err := t.mayVerify(ctx, c); err != nil {
			return TaskDone{Task: task}, err
		}
	}
	led := t.as(c)
	task, err = led.UpdateTask(ctx, ledger.TaskPatch{
		ID: in.TaskID, By: c.Name, Subject: in.Subject, Description: in.Description, ActiveForm: in.ActiveForm,
		Priority: in.Priority, Verify: in.Verify, Metadata: in.Metadata,
	})
	if err != nil {
		return TaskDone{Task: task}, err
	}
	if len(in.AddDependsOn) > 0 {
		if task, err = led.AddDeps(ctx, in.TaskID, in.AddDependsOn, c.Name); err != nil {
			return TaskDone{Task: task}, err
		}
	}
	if len(in.RemoveDependsOn) > 0 {
		if task, err = led.RemoveDeps(ctx, in.TaskID, in.RemoveDependsOn, c.Name); err != nil {
			return TaskDone{Task: task}, err
		}
	}
	if in.Owner != nil {
		if task, err = t.assign(ctx, c, task, *in.Owner); err != nil {
			return TaskDone{Task: task}, err
		}
	}
	t.Verifying(ctx, task) // its command may have changed
	if in.Status != nil && *in.Status != task.Status {
		return t.setStatus(ctx, c, task, *in.Status)
	}
	t.Used(ctx, c, task)
	outcome := ""
	if in.Status != nil && in.onlyStatus() {
		outcome = Already + string(task.Status)
	}
	return TaskDone{Task: task, Outcome: outcome}, nil
}

// setStatus moves a task to a status by the corresponding operation.
func (t *Team) setStatus(ctx context.Context, c Caller, task ledger.Task, to team.TaskStatus) (TaskDone, error) {
	switch to {
	case team.TaskInProgress, team.TaskClaimed:
		if task.Status == team.TaskPending {
			if _, err := t.TaskClaim(ctx, c, task.ID); err != nil {
				return TaskDone{Task: task}, err
			}
		}
		if to == team.TaskClaimed {
			task, err := t.Ledger.Task(ctx, task.ID)
			return TaskDone{Task: task}, err
		}
		task, err := t.TaskStart(ctx, c, task.ID, 0)
		return TaskDone{Task: task}, err
	case team.TaskCompleted:
		return t.TaskComplete(ctx, c, task.ID, 0, ledger.Result{})
	case team.TaskFailed:
		return t.TaskFail(ctx, c, task.ID, 0, ledger.Result{})
	case team.TaskPending:
		if task.Status == team.TaskFailed {
			return t.TaskRetry(ctx, c, task.ID)
		}
		return t.TaskRelease(ctx, c, task.ID, 0)
	default:
		return TaskDone{Task: task}, team.Errorf(team.CodeInvalid, "unknown task status %q", to)
	}
}

// TaskAssign assigns a task that is not done to a member, or with an empty name to any ready
// member. Its current owner loses it. The member is notified.
func (t *Team) TaskAssign(ctx context.Context, c Caller, id, member string) (ledger.Task, error) {
	if err := t.may(ctx, c, OpTaskManage); err != nil {
		return ledger.Task{}, err
	}
	task, err := t.Ledger.Task(ctx, id)
	if err != nil {
		return task, err
	}
	return t.assign(ctx, c, task, member)
}

func (t *Team) assign(ctx context.Context, c Caller, task ledger.Task, member string) (ledger.Task, error) {
	if member == "" {
		if task.Owner == "" {
			return task, nil
		}
		return t.as(c).Reassign(ctx, task.ID, "", c.Name)
	}
	m, err := t.Member(ctx, member)
	if err != nil {
		return task, err
	}
	if roles()[OpTaskWork][m.Role] == no {
		return task, team.Errorf(team.CodeDenied, "%s (%s) may not %s", m.Name, m.Role, OpTaskWork).WithReason(team.ReasonRole).
			WithHint("assign it to another member, or first: teamctl role " + m.Name + " " + string(team.RoleExecutor))
	}
	if m.SessionKey == task.Owner && task.Status == team.TaskPending {
		return task, nil
	}
	if m.Name == c.Name {
		return t.as(c).Reassign(ctx, task.ID, m.SessionKey, c.Name)
	}
	text, err := inbox.Encode(inbox.TaskAssignment{
		TaskID: task.ID, Subject: task.Subject, Description: task.Description, AssignedBy: c.Name, Timestamp: inbox.Timestamp(time.Now()),
	})
	if err != nil {
		return task, err
	}
	task, _, ds, err := t.as(c).Assign(ctx, task.ID, m.SessionKey, c.Name, ledger.NewMessage{
		Kind: team.KindTaskAssignment, From: c.Name, To: m.Name, ToSession: m.SessionKey, Text: text,
		Summary: inbox.Summary("", "task "+task.ID+": "+task.Subject),
	})
	if err == nil {
		t.mailer(c).Deliver(ctx, ds)
	}
	return task, err
}

// TaskClaimIdle is TaskClaim for a caller without another task; otherwise CodeConflict agent_busy.
func (t *Team) TaskClaimIdle(ctx context.Context, c Caller, id string) (*ledger.Task, error) {
	session, err := t.mayWork(ctx, c)
	if err != nil {
		return nil, err
	}
	return t.as(c).Claim(ctx, ledger.ClaimIn{Owner: session, ID: id, OneOnly: true})
}

// TaskDelete deletes a task that is not in progress; its dependents are unblocked from it.
func (t *Team) TaskDelete(ctx context.Context, c Caller, id string) (TaskDeleted, error) {
	if err := t.may(ctx, c, OpTaskManage); err != nil {
		return TaskDeleted{}, err
	}
	ready, err := t.as(c).DeleteTask(ctx, id)
	if err != nil {
		return t.deletedTask(ctx, id, err)
	}
	return TaskDeleted{ID: id, Ready: ready}, nil
}

// TaskAuto sets whether members claim the next ready task by themselves: one member, or with an
// empty name all.
func (t *Team) TaskAuto(ctx context.Context, c Caller, member string, on bool) error {
	if err := t.may(ctx, c, OpTaskManage); err != nil {
		return err
	}
	if member != "" {
		m, err := t.Member(ctx, member)
		if err != nil {
			return err
		}
		member = m.Name
	}
	return t.as(c).SetAutoClaim(ctx, member, on)
}

// TaskExport returns the whole board, for TaskImport.
func (t *Team) TaskExport(ctx context.Context) (TaskDump, error) {
	tasks, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{})
	if err != nil {
		return TaskDump{}, err
	}
	high, err := t.Ledger.HighWater(ctx) // read last, so that no task is above it
	return TaskDump{Format: dumpFormat, Version: dumpVersion, Team: t.Layout.Key, ExportedAt: nowMS(), HighWater: high, Tasks: tasks}, err
}

// TaskImport imports a board, all or nothing.
func (t *Team) TaskImport(ctx context.Context, c Caller, d TaskDump, renumber bool) (ledger.Imported, error) {
	if err := t.may(ctx, c, OpTaskManage); err != nil {
		return ledger.Imported{}, err
	}
	if slices.ContainsFunc(d.Tasks, func(task ledger.Task) bool { return task.Verify != "" }) {
		if err := t.mayVerify(ctx, c); err != nil {
			return ledger.Imported{}, err
		}
	}
	if d.Format != dumpFormat || d.Version != dumpVersion {
		return ledger.Imported{}, team.Errorf(team.CodeInvalid, "this is not a supported export of tasks (format %q, version %d)", d.Format, d.Version)
	}
	return t.as(c).ImportTasks(ctx, ledger.ImportIn{Tasks: d.Tasks, HighWater: d.HighWater, Renumber: renumber, By: c.Name})
}

const (
	dumpFormat  = "teamctl-tasks"
	dumpVersion = 1
)

// TaskDump is an exported board.
type TaskDump struct {
	Format     string        `json:"format"`
	Version    int           `json:"version"`
	Team       string        `json:"team"`
	ExportedAt int64         `json:"exportedAt"`
	HighWater  int64         `json:"highwatermark"`
	Tasks      []ledger.Task `json:"tasks"`
}

// RunStart starts a run, or a sub-run of the current one.
func (t *Team) RunStart(ctx context.Context, c Caller, in ledger.RunStart) (ledger.Run, error) {
	if err := t.may(ctx, c, OpRun); err != nil {
		return ledger.Run{}, err
	}
	return t.as(c).BeginRun(ctx, in)
}

// RunClose closes a run, 0 for the current one.
func (t *Team) RunClose(ctx context.Context, c Caller, id int64) (RunsDone, error) {
	if err := t.may(ctx, c, OpRun); err != nil {
		return RunsDone{}, err
	}
	closed, err := t.as(c).CloseRun(ctx, id)
	if err != nil {
		return t.closedBefore(ctx, err)
	}
	return RunsDone{RunsClosed: closed}, nil
}

// History returns the events of a task, oldest first, also of a deleted one. A task whose events
// were pruned has none.
func (t *Team) History(ctx context.Context, id string) ([]ledger.Event, error) {
	events, err := t.Ledger.Events(ctx, 0, 0, ledger.EventFilter{ID: id, What: team.TaskEvents})
	if err != nil || len(events) > 0 {
		return events, err
	}
	_, err = t.Ledger.Task(ctx, id)
	return []ledger.Event{}, err
}
