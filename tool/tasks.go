package tool

import (
	"context"
	"errors"
	"slices"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TaskAdd creates a batch of tasks: all or none. Only a person or a leader may set a verify
// command, which runs outside the owner's permissions.
func (t *Team) TaskAdd(ctx context.Context, c Caller, in TaskAddIn) ([]ledger.Task, error) {
	if err := t.may(ctx, c, OpTaskAdd); err != nil {
		return nil, err
	}
	if len(in.Tasks) == 0 {
		return nil, team.Errorf(team.CodeInvalid, "there is no task to add")
	}
	if slices.ContainsFunc(in.Tasks, func(n ledger.NewTask) bool { return n.Verify != "" }) {
		if err := t.mayVerify(ctx, c); err != nil {
			return nil, err
		}
	}
	if err := t.askCreated(ctx, c, in.Tasks); err != nil {
		return nil, err
	}
	return t.as(c).CreateTasks(ctx, in.Tasks, c.Name)
}

// mayWork refuses a caller that cannot own tasks, or is not a member.
func (t *Team) mayWork(ctx context.Context, c Caller) (session string, err error) {
	if err := t.may(ctx, c, OpTaskWork); err != nil {
		return "", err
	}
	if c.Session != "" {
		return c.Session, nil
	}
	m, err := t.Ledger.Member(ctx, c.Name)
	return m.SessionKey, err
}

// TaskClaim claims a task by id, or the next ready one; nil if none is ready.
func (t *Team) TaskClaim(ctx context.Context, c Caller, id string) (*ledger.Task, error) {
	session, err := t.mayWork(ctx, c)
	if err != nil {
		return nil, err
	}
	return t.as(c).Claim(ctx, ledger.ClaimIn{Owner: session, ID: id, Lease: ledger.Lease})
}

// change runs one of the owner's writes and returns the task after it. Attempt 0 means the current
// one.
func (t *Team) change(ctx context.Context, c Caller, id string, attempt int, f func(*ledger.Ledger, ledger.TaskRef) error) (ledger.Task, error) {
	session, err := t.mayWork(ctx, c)
	if err != nil {
		return ledger.Task{}, err
	}
	task, err := t.Ledger.Task(ctx, id)
	if err != nil {
		return ledger.Task{}, err
	}
	if c.Person && task.Owner != "" {
		session = task.Owner // a person may end anyone's task
	}
	if attempt == 0 {
		attempt = task.Attempt
	}
	if err := f(t.as(c), ledger.TaskRef{ID: id, Owner: session, Attempt: attempt}); err != nil {
		return ledger.Task{}, err
	}
	return t.Ledger.Task(ctx, id)
}

// TaskStart marks a claimed task as in progress.
func (t *Team) TaskStart(ctx context.Context, c Caller, id string, attempt int) (ledger.Task, error) {
	return t.change(ctx, c, id, attempt, func(l *ledger.Ledger, r ledger.TaskRef) error { return l.Start(ctx, r) })
}

// TaskComplete completes a task of the caller; its dependents are unblocked in the same
// transaction, and the lead is notified. A task with a verify command is verified first, whoever
// completes it, and while the team has a reviewer it is then reviewed: such a task has
// Verification or Review set, and stays in_progress.
func (t *Team) TaskComplete(ctx context.Context, c Caller, id string, attempt int, res ledger.Result) (TaskDone, error) {
	task, err := t.change(ctx, c, id, attempt, func(l *ledger.Ledger, r ledger.TaskRef) error {
		complete := l.Complete
		if c.Person { // the person who would review it completes it
			complete = l.CompleteReviewed
		}
		if err := t.MayComplete(ctx, r, res); err != nil {
			return err
		}
		_, err := complete(ctx, r, res)
		return err
	})
	if err == nil {
		t.MailCompleted(ctx, c, task)
		t.Verifying(ctx, task)
	}
	return t.done(ctx, c, task, id, attempt, team.TaskCompleted, err)
}

// Verifying starts a supervisor if tasks wait for their verification. It reports no failure, since
// the task is safe: the next supervisor finds it.
func (t *Team) Verifying(ctx context.Context, tasks ...ledger.Task) {
	if t.Env.Dial != nil && slices.ContainsFunc(tasks, func(task ledger.Task) bool { return task.Verification != 0 }) {
		_, _ = t.Env.Dial(ctx, t.Layout, true)
	}
}

// verifyOn starts a supervisor if tasks wait for their verification because the previous
// supervisor was killed.
func (t *Team) verifyOn(ctx context.Context) error {
	todo, err := t.Ledger.Unverified(ctx)
	if err == nil && len(todo) > 0 && t.Env.Dial != nil {
		_, _ = t.Env.Dial(ctx, t.Layout, true) // as in Verifying
	}
	return err
}

// mayVerify refuses callers that may not set verify commands.
func (t *Team) mayVerify(ctx context.Context, c Caller) error {
	err := t.may(ctx, c, OpTaskVerify)
	var e *team.Error
	if errors.As(err, &e) && e.Reason == "role" {
		return e.WithHint("leave out verify, or ask the lead to set it: it runs with the rights of the team, not with yours")
	}
	return err
}

// TaskFail fails a task of the caller.
func (t *Team) TaskFail(ctx context.Context, c Caller, id string, attempt int, res ledger.Result) (TaskDone, error) {
	task, err := t.change(ctx, c, id, attempt, func(l *ledger.Ledger, r ledger.TaskRef) error { return l.Fail(ctx, r, res) })
	return t.done(ctx, c, task, id, attempt, team.TaskFailed, err)
}

// TaskRelease releases a task of the caller.
func (t *Team) TaskRelease(ctx context.Context, c Caller, id string, attempt int) (TaskDone, error) {
	task, err := t.change(ctx, c, id, attempt, func(l *ledger.Ledger, r ledger.TaskRef) error { return l.Release(ctx, r) })
	return t.done(ctx, c, task, id, attempt, team.TaskPending, err)
}

// TaskCancel cancels a task that is not done, whoever works on it.
func (t *Team) TaskCancel(ctx context.Context, c Caller, id, reason string) (TaskDone, error) {
	if err := t.may(ctx, c, OpTaskManage); err != nil {
		return TaskDone{}, err
	}
	task, err := t.as(c).Cancel(ctx, id, reason)
	return t.done(ctx, c, task, id, 0, team.TaskFailed, err)
}

// TaskRetry makes a failed task pending again.
func (t *Team) TaskRetry(ctx context.Context, c Caller, id string) (TaskDone, error) {
	if err := t.may(ctx, c, OpTaskRetry); err != nil {
		return TaskDone{}, err
	}
	err := t.as(c).RetryTask(ctx, id)
	var task ledger.Task
	if err == nil {
		task, err = t.Ledger.Task(ctx, id)
	}
	return t.done(ctx, c, task, id, 0, team.TaskPending, err)
}
