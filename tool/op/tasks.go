package op

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func taskOps() []Op {
	work := []tool.Operation{tool.OpTaskWork}
	return []Op{
		with(Op{Name: "TaskCreate", Verb: "task add", Gates: []tool.Operation{tool.OpTaskAdd, tool.OpTaskVerify}}, taskCreate),
		with(Op{Name: "TaskGet", Verb: "task show", ReadOnly: true, Idempotent: true}, taskGet),
		with(Op{Name: "TaskList", Verb: "task ls", ReadOnly: true, Idempotent: true}, taskList),
		with(Op{Name: "TaskUpdate", Verb: "task edit", Gates: []tool.Operation{tool.OpTaskWork, tool.OpTaskManage, tool.OpTaskVerify}, Destructive: true, Idempotent: true}, taskUpdate),
		with(Op{Name: "TaskClaim", Verb: "task claim", Gates: work}, taskClaim),
		with(Op{Name: "TaskComplete", Verb: "task complete", Gates: work, Idempotent: true}, taskComplete),
		with(Op{Name: "TaskFail", Verb: "task fail", Gates: work, Idempotent: true}, taskFail),
		with(Op{Name: "TaskRelease", Verb: "task release", Gates: work, Idempotent: true}, taskRelease),
		with(Op{Name: "TaskRetry", Verb: "task retry", Gates: []tool.Operation{tool.OpTaskRetry}, Idempotent: true}, taskRetry),
	}
}

// TaskCreateIn adds tasks.
type TaskCreateIn struct {
	TeamRef
	Subject     string          `json:"subject" jsonschema:"What is to be done in a few words, at most 200 characters."`
	Description string          `json:"description" jsonschema:"All that whoever takes it needs to know, at most 10000 characters."`
	ActiveForm  string          `json:"activeForm,omitempty" jsonschema:"What is shown while it is in work, for example: Running the tests."`
	DependsOn   []string        `json:"dependsOn,omitempty" jsonschema:"Ids of tasks that must be completed first."`
	Metadata    json.RawMessage `json:"metadata,omitempty" jsonschema:"A JSON object of your own; the key run is the command that the built-in worker executes."`
	Priority    int             `json:"priority,omitempty" jsonschema:"Higher is taken first."`
	Verify      string          `json:"verify,omitempty" jsonschema:"Command that must pass before the task counts as completed, whoever does it. Only a person or a leader gives it."`
}

// TaskOut is one task after a change.
type TaskOut struct {
	Success bool        `json:"success"`
	Message string      `json:"message"`
	Outcome string      `json:"outcome,omitempty"` // already_completed and the like: nothing was changed
	Task    ledger.Task `json:"task"`
}

// taskDone is the result of a verb on a task that may be repeated.
func taskDone(d tool.TaskDone, err error, format string, args ...any) (TaskOut, error) {
	out, err := taskOut(d.Task, err, format, args...)
	if d.Outcome != "" && err == nil {
		out.Outcome, out.Message = d.Outcome, fmt.Sprintf("Task #%s is %s already: %s", d.ID, d.Status, d.Subject)
	}
	return out, err
}

func taskOut(t ledger.Task, err error, format string, args ...any) (TaskOut, error) {
	if err != nil {
		return TaskOut{}, err
	}
	return TaskOut{Success: true, Message: fmt.Sprintf(format, args...), Task: t}, nil
}

func taskCreate(ctx context.Context, s *Session, in TaskCreateIn) (TaskOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (TaskOut, error) {
		list, err := t.TaskAdd(ctx, c, tool.TaskAddIn{Tasks: []ledger.NewTask{{
			Subject: in.Subject, Description: in.Description, ActiveForm: in.ActiveForm, DependsOn: taskIDs(in.DependsOn),
			Metadata: in.Metadata, Priority: in.Priority, Verify: in.Verify,
		}}})
		if err != nil {
			return TaskOut{}, err
		}
		return taskOut(list[0], nil, "Task #%s created successfully: %s", list[0].ID, list[0].Subject)
	})
}

// taskID accepts "3" and "#3".
func taskID(id string) string { return strings.TrimPrefix(strings.TrimSpace(id), "#") }

func taskIDs(ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = taskID(id)
	}
	return out
}

// TaskGetIn names a task.
type TaskGetIn struct {
	TeamRef
	TaskID string `json:"task_id" jsonschema:"Id of the task."`
}

func taskGet(ctx context.Context, s *Session, in TaskGetIn) (TaskOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (TaskOut, error) {
		task, err := t.Ledger.Task(ctx, taskID(in.TaskID))
		if err == nil {
			t.Used(ctx, c, task)
		}
		return taskOut(task, err, "%s", TaskLine(task))
	})
}

// TaskListIn selects tasks.
type TaskListIn struct {
	TeamRef
	Status           team.TaskStatus   `json:"status,omitempty" jsonschema:"Only tasks in this status."`
	Owner            string            `json:"owner,omitempty" jsonschema:"Only tasks of this member."`
	Metadata         map[string]string `json:"metadata,omitempty" jsonschema:"Only tasks that have these top-level keys in their metadata, with these values as text."`
	IncludeCompleted bool              `json:"includeCompleted,omitempty" jsonschema:"Completed tasks too."`
	Newest           bool              `json:"newest,omitempty" jsonschema:"Newest first."`
	Limit            int               `json:"limit,omitempty" jsonschema:"At most so many; all if left out."`
}

// TaskListOut is a list of tasks. Text has one line for each.
type TaskListOut struct {
	Tasks  []TaskSummary `json:"tasks"`
	Text   string        `json:"text"`
	Counts ledger.Counts `json:"counts"` // of the whole board
}

// TaskSummary is a task in a list.
type TaskSummary struct {
	ID         string          `json:"id"`
	Subject    string          `json:"subject"`
	Status     team.TaskStatus `json:"status"`
	ActiveForm string          `json:"activeForm,omitempty"`
	Owner      string          `json:"owner,omitempty"` // name
	BlockedBy  []string        `json:"blockedBy"`
	Priority   int             `json:"priority,omitempty"`
	Waits      string          `json:"waits,omitempty"` // of a submitted task: verification or review
}

func taskList(ctx context.Context, s *Session, in TaskListIn) (TaskListOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, _ tool.Caller) (TaskListOut, error) {
		if in.Limit < 0 {
			return TaskListOut{}, team.Errorf(team.CodeInvalid, "limit must be 0 or more").WithReason(team.ReasonInput)
		}
		f := ledger.TaskFilter{Status: in.Status, Newest: in.Newest, Metadata: in.Metadata}
		if in.Owner != "" {
			m, err := t.Member(ctx, in.Owner)
			if err != nil {
				return TaskListOut{}, err
			}
			f.Owner = m.SessionKey
		}
		all, err := t.Ledger.Tasks(ctx, f)
		if err != nil {
			return TaskListOut{}, err
		}
		if !in.IncludeCompleted && in.Status != team.TaskCompleted {
			all = slices.DeleteFunc(all, func(t ledger.Task) bool { return t.Status == team.TaskCompleted })
		}
		if in.Limit > 0 && len(all) > in.Limit {
			all = all[:in.Limit]
		}
		return Board(ctx, t, all)
	})
}

// Board returns a list of tasks with the counts of the whole board.
func Board(ctx context.Context, t *tool.Team, all []ledger.Task) (TaskListOut, error) {
	out := TaskListOut{Tasks: make([]TaskSummary, 0, len(all))}
	lines := make([]string, 0, len(all))
	for _, t := range all {
		lines = append(lines, TaskLine(t))
		out.Tasks = append(out.Tasks, TaskSummary{
			ID: t.ID, Subject: t.Subject, Status: t.Status, ActiveForm: t.ActiveForm, Owner: t.OwnerName, BlockedBy: t.BlockedBy, Priority: t.Priority, Waits: waitsFor(t),
		})
	}
	out.Text = strings.Join(lines, "\n")
	if len(lines) == 0 {
		out.Text = "No tasks found"
	}
	var err error
	out.Counts, err = t.Ledger.Counts(ctx)
	return out, err
}

// TaskLine formats a task in one line.
func TaskLine(t ledger.Task) string {
	line := fmt.Sprintf("#%s [%s] %s", t.ID, t.Status, t.Subject)
	if t.OwnerName != "" && t.Status != team.TaskPending || t.Owner != "" {
		line += " (owner: " + t.OwnerName + ")"
	}
	switch waitsFor(t) {
	case "verification":
		line += " [being verified]"
	case "review":
		line += " [waits for a review]"
	}
	if len(t.BlockedBy) > 0 {
		line += " [blocked by #" + strings.Join(t.BlockedBy, ", #") + "]"
	}
	return line
}

// waitsFor returns what a submitted task waits for.
func waitsFor(t ledger.Task) string {
	switch {
	case t.Verification != 0:
		return "verification"
	case t.Review != 0:
		return "review"
	}
	return ""
}

// TaskUpdateIn changes a task. Status deleted removes it from the board.
type TaskUpdateIn struct {
	TeamRef
	TaskID          string          `json:"task_id" jsonschema:"Id of the task."`
	Subject         *string         `json:"subject,omitempty" jsonschema:"New subject."`
	Description     *string         `json:"description,omitempty" jsonschema:"New description."`
	ActiveForm      *string         `json:"activeForm,omitempty" jsonschema:"New label for while it is in work."`
	Priority        *int            `json:"priority,omitempty" jsonschema:"New priority."`
	Verify          *string         `json:"verify,omitempty" jsonschema:"New command that must pass; empty for none. Only a person or a leader gives it."`
	Metadata        json.RawMessage `json:"metadata,omitempty" jsonschema:"Keys to set; a key that is null is deleted."`
	Owner           *string         `json:"owner,omitempty" jsonschema:"Member to give it to; empty for whoever is ready. The member is told."`
	AddDependsOn    []string        `json:"addDependsOn,omitempty" jsonschema:"Ids of tasks that must be completed first, to be added."`
	RemoveDependsOn []string        `json:"removeDependsOn,omitempty" jsonschema:"Ids of tasks that this one depends on no longer."`
	AddBlocks       []string        `json:"addBlocks,omitempty" jsonschema:"As in Claude Code: ids of tasks that depend on this one from now on."`
	AddBlockedBy    []string        `json:"addBlockedBy,omitempty" jsonschema:"As in Claude Code: the same as addDependsOn."`
	Status          *string         `json:"status,omitempty" jsonschema:"in_progress, completed, failed, pending (to give it back) or deleted."`
}

const statusDeleted = "deleted"

func taskUpdate(ctx context.Context, s *Session, in TaskUpdateIn) (TaskOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (TaskOut, error) {
		id := taskID(in.TaskID)
		patch := tool.TaskUpdateIn{
			TaskID: id, Subject: in.Subject, Description: in.Description, ActiveForm: in.ActiveForm, Priority: in.Priority, Verify: in.Verify,
			Metadata: in.Metadata, Owner: in.Owner, AddDependsOn: taskIDs(append(in.AddDependsOn, in.AddBlockedBy...)), RemoveDependsOn: taskIDs(in.RemoveDependsOn),
		}
		gone := in.Status != nil && *in.Status == statusDeleted
		if in.Status != nil && !gone {
			st, err := team.ParseTaskStatus(*in.Status)
			if err != nil {
				return TaskOut{}, err
			}
			patch.Status = &st
		}
		if gone {
			task, err := t.Ledger.Task(ctx, id)
			done, derr := t.TaskDelete(ctx, c, id)
			if derr != nil {
				return TaskOut{}, derr
			}
			if done.Outcome != "" || err != nil { // its row is gone
				task = ledger.Task{ID: id, Status: done.Was, DependsOn: []string{}, BlockedBy: []string{}}
			}
			out, err := taskOut(task, nil, "Deleted task #%s", id)
			if done.Outcome != "" {
				out.Outcome, out.Message = done.Outcome, fmt.Sprintf("Task #%s is deleted already", id)
			}
			return out, err
		}
		for _, other := range taskIDs(in.AddBlocks) { // first, since the new status may end the task
			if _, err := t.TaskUpdate(ctx, c, tool.TaskUpdateIn{TaskID: other, AddDependsOn: []string{id}}); err != nil {
				return TaskOut{}, err
			}
		}
		task, err := t.TaskUpdate(ctx, c, patch)
		if err == nil && task.Verification != 0 {
			return taskDone(task, nil, "Updated task #%s: it is being verified (%s), its owner is told if it fails", id, task.Verify)
		}
		return taskDone(task, err, "Updated task #%s", id)
	})
}

// TaskClaimIn claims a task.
type TaskClaimIn struct {
	TeamRef
	TaskID string `json:"task_id,omitempty" jsonschema:"Id of the task; the next ready one if left out."`
}

// TaskClaimOut has no task if none is ready.
type TaskClaimOut struct {
	Success bool         `json:"success"`
	Message string       `json:"message"`
	Task    *ledger.Task `json:"task,omitempty"`
}

func taskClaim(ctx context.Context, s *Session, in TaskClaimIn) (TaskClaimOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (TaskClaimOut, error) {
		task, err := t.TaskClaim(ctx, c, taskID(in.TaskID))
		switch {
		case err != nil:
			return TaskClaimOut{}, err
		case task == nil:
			return TaskClaimOut{Message: "No task is ready"}, nil
		}
		return TaskClaimOut{Success: true, Message: fmt.Sprintf("Claimed task #%s: %s", task.ID, task.Subject), Task: task}, nil
	})
}

// TaskCompleteIn completes a task.
type TaskCompleteIn struct {
	TeamRef
	TaskID  string   `json:"task_id" jsonschema:"Id of the task."`
	Summary string   `json:"summary,omitempty" jsonschema:"What was done."`
	Commit  string   `json:"commit,omitempty" jsonschema:"Full hash of the commit that has the work."`
	Files   []string `json:"files,omitempty" jsonschema:"Files that were changed."`
	Attempt int      `json:"attempt,omitempty" jsonschema:"The attempt that you claimed: refused if it is no longer the current one."`
}

func taskComplete(ctx context.Context, s *Session, in TaskCompleteIn) (TaskOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (TaskOut, error) {
		task, err := t.TaskComplete(ctx, c, taskID(in.TaskID), in.Attempt, ledger.Result{Summary: in.Summary, Commit: in.Commit, Files: in.Files})
		if task.Verification != 0 {
			return taskDone(task, err, "Task #%s is handed in and is being verified (%s): nothing is to be done, its owner is told if it fails", task.ID, task.Verify)
		}
		if task.Review != 0 {
			return taskDone(task, err, "Task #%s is done and waits for a review (approval %d)", task.ID, task.Review)
		}
		return taskDone(task, err, "Completed task #%s: %s", task.ID, task.Subject)
	})
}

// TaskFailIn fails a task with a reason.
type TaskFailIn struct {
	TeamRef
	TaskID   string `json:"task_id" jsonschema:"Id of the task."`
	Error    string `json:"error" jsonschema:"What went wrong, for whoever tries next."`
	ExitCode int    `json:"exit_code,omitempty" jsonschema:"Exit status of what was run."`
	Attempt  int    `json:"attempt,omitempty" jsonschema:"The attempt that you claimed: refused if it is no longer the current one."`
}

func taskFail(ctx context.Context, s *Session, in TaskFailIn) (TaskOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (TaskOut, error) {
		task, err := t.TaskFail(ctx, c, taskID(in.TaskID), in.Attempt, ledger.Result{Error: in.Error, ExitCode: in.ExitCode})
		return taskDone(task, err, "Task #%s is now %s: %s", task.ID, task.Status, task.Subject)
	})
}

// TaskReleaseIn releases a task.
type TaskReleaseIn struct {
	TeamRef
	TaskID  string `json:"task_id" jsonschema:"Id of the task."`
	Attempt int    `json:"attempt,omitempty" jsonschema:"The attempt that you claimed: refused if it is no longer the current one."`
}

func taskRelease(ctx context.Context, s *Session, in TaskReleaseIn) (TaskOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (TaskOut, error) {
		task, err := t.TaskRelease(ctx, c, taskID(in.TaskID), in.Attempt)
		return taskDone(task, err, "Released task #%s: %s", task.ID, task.Subject)
	})
}

// TaskRetryIn names a task that has ended.
type TaskRetryIn struct {
	TeamRef
	TaskID string `json:"task_id" jsonschema:"Id of the task."`
}

func taskRetry(ctx context.Context, s *Session, in TaskRetryIn) (TaskOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (TaskOut, error) {
		task, err := t.TaskRetry(ctx, c, taskID(in.TaskID))
		return taskDone(task, err, "Task #%s is pending again", task.ID)
	})
}
