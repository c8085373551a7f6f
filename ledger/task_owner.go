package ledger

import (
	"context"

	"github.com/teamctl/teamctl/team"
)

const (
	sqlTaskStart = `UPDATE tasks SET status = 'in_progress', startedAt = ?, leaseUntil = max(coalesce(leaseUntil, 0), ?) WHERE id = ?`
	sqlTaskAgain = `UPDATE tasks SET leaseUntil = max(coalesce(leaseUntil, 0), ?) WHERE id = ?`
	sqlTaskEnd   = `UPDATE tasks SET status = ?, completedAt = ?, leaseUntil = NULL, result = ? WHERE id = ?`
	sqlTaskFree  = `UPDATE tasks SET status = 'pending', owner = NULL, ownerName = NULL, claimedAt = NULL, startedAt = NULL,
		completedAt = NULL, leaseUntil = NULL, result = NULL, notBefore = 0 WHERE id = ?`
	// Tasks that depended on the task and have no other unmet dependency.
	sqlReadyAfter = `SELECT t.id FROM task_deps d JOIN tasks t ON t.id = d.task
		WHERE d.dependsOn = ? AND t.status = 'pending' AND t.unmet = 0 ORDER BY t.seq`
)

// TaskRef names a claim: later writes of an owner are valid only for the
// attempt of its claim.
type TaskRef struct {
	ID      string `json:"id"`
	Owner   string `json:"owner"` // session key
	Attempt int    `json:"attempt"`
}

type endArgs struct {
	TaskRef
	Result Result `json:"result"`
}

// Start moves a claimed task to in_progress and renews its lease; repeating it
// renews the lease again. Errors of every fenced write: CodeNotFound
// task_not_found, CodeConflict not_owner, stale_attempt, already_resolved.
func (l *Ledger) Start(ctx context.Context, ref TaskRef) error {
	_, err := write[none](ctx, l, opTaskStart, ref)
	return err
}

// Complete ends a task and returns the ids of those that became ready as a
// result; the same transaction notifies the lead (team.KindTaskCompleted),
// unless the task was its own. If the task has a verification command, or the
// team has a reviewer other than the owner, it waits for those first, in this
// order: it stays in_progress with Task.Verification, or Task.Review, set.
func (l *Ledger) Complete(ctx context.Context, ref TaskRef, res Result) (ready []string, err error) {
	return write[[]string](ctx, l, opTaskComplete, endArgs{ref, res})
}

// Fail ends a task that could not be done; its dependents stay blocked. A task
// with retries left becomes pending again instead, and claimable after its
// backoff. A pending task is failed with an empty Owner: it is given up
// unclaimed.
func (l *Ledger) Fail(ctx context.Context, ref TaskRef, res Result) error {
	_, err := write[none](ctx, l, opTaskFail, endArgs{ref, res})
	return err
}

// Release returns a claimed task to pending.
func (l *Ledger) Release(ctx context.Context, ref TaskRef) error {
	_, err := write[none](ctx, l, opTaskRelease, ref)
	return err
}

// RetryTask moves a failed task back to pending, with all its retries, and
// makes a task that waits for a retry ready now; CodeConflict (bad_status) for
// any other.
func (l *Ledger) RetryTask(ctx context.Context, id string) error {
	_, err := write[none](ctx, l, opTaskRetry, id)
	return err
}

func startTask(t *tx, ref TaskRef) (none, error) {
	task, err := t.fenced(ref)
	if err != nil {
		return none{}, err
	}
	if task.Status == team.TaskInProgress {
		_, err := t.exec(sqlTaskAgain, t.now+Lease.Milliseconds(), task.ID)
		return none{}, err
	}
	if _, err := t.exec(sqlTaskStart, t.now, t.now+Lease.Milliseconds(), task.ID); err != nil {
		return none{}, err
	}
	return none{}, t.taskEvent(team.EventTaskStarted, task.OwnerName, task.ID, task.Status, team.TaskInProgress, attemptData{task.Attempt})
}

func completeTask(t *tx, a endArgs) ([]string, error) {
	task, err := t.fenced(a.TaskRef)
	if err != nil {
		return nil, err
	}
	return t.handIn(task, a.Result, false)
}

func (t *tx) complete(task Task, res Result) ([]string, error) {
	if _, err := t.exec(sqlTaskEnd, team.TaskCompleted, t.now, mustJSON(res), task.ID); err != nil {
		return nil, err
	}
	if task.Review != 0 {
		if _, err := t.exec(sqlReviewOver, task.ID); err != nil {
			return nil, err
		}
	}
	if err := t.taskEvent(team.EventTaskCompleted, task.OwnerName, task.ID, task.Status, team.TaskCompleted, res); err != nil {
		return nil, err
	}
	ready, err := column[string](t, sqlReadyAfter, task.ID)
	if err != nil {
		return nil, err
	}
	if err := t.tellCompleted(task, ready); err != nil {
		return nil, err
	}
	return t.unblocked(ready, task.OwnerName)
}

// unblocked logs the tasks that became ready and returns them.
func (t *tx) unblocked(ready []string, who string) ([]string, error) {
	for _, id := range ready {
		if err := t.taskEvent(team.EventTaskUnblocked, who, id, team.TaskPending, team.TaskPending, nil); err != nil {
			return nil, err
		}
	}
	return append([]string{}, ready...), nil
}

func failTask(t *tx, a endArgs) (none, error) {
	task, err := t.toFail(a.TaskRef)
	if err != nil {
		return none{}, err
	}
	if a.Owner == "" {
		return none{}, t.failForGood(task, a.Result)
	}
	return none{}, t.fail(task, a.Result)
}

// fail ends a task that its owner could not do; a task with retries left
// becomes pending.
func (t *tx) fail(task Task, res Result) error {
	if task.Retries < task.MaxRetries {
		return t.retryLater(task, res)
	}
	return t.failForGood(task, res)
}

func (t *tx) failForGood(task Task, res Result) error {
	if _, err := t.exec(sqlTaskEnd, team.TaskFailed, t.now, mustJSON(res), task.ID); err != nil {
		return err
	}
	return t.taskEvent(team.EventTaskFailed, task.OwnerName, task.ID, task.Status, team.TaskFailed, res)
}

func (t *tx) toFail(ref TaskRef) (Task, error) {
	if ref.Owner != "" {
		return t.fencedFor(ref, false) // also during its verification
	}
	task, err := t.task(ref.ID)
	if err == nil && task.Status != team.TaskPending {
		err = errStatus(task, "only a pending task can be failed without its owner")
	}
	task.OwnerName = ""
	return task, err
}

func releaseTask(t *tx, ref TaskRef) (none, error) {
	task, err := t.fencedFor(ref, false) // also during its verification
	if err != nil {
		return none{}, err
	}
	by := orDefault(t.who, task.OwnerName)
	if by == task.OwnerName {
		return none{}, t.free(task, by, "released by its owner")
	}
	if err := t.free(task, by, "released by "+by); err != nil {
		return none{}, err
	}
	_, err = t.exec(sqlTaskHold, t.now+ReleaseHold.Milliseconds(), task.ID)
	return none{}, err
}

func retryTask(t *tx, id string) (none, error) {
	task, err := t.task(id)
	if err != nil {
		return none{}, err
	}
	later := task.Status == team.TaskPending && task.NotBefore > 0
	if task.Status != team.TaskFailed && !later {
		return none{}, errStatus(task, "only a failed task can be retried")
	}
	for _, q := range []string{sqlTaskFree, sqlTaskFresh} {
		if _, err := t.exec(q, id); err != nil {
			return none{}, err
		}
	}
	return none{}, t.taskEvent(team.EventTaskRetried, "", id, task.Status, team.TaskPending, nil)
}

// free moves a task back to pending.
func (t *tx) free(task Task, who, why string) error {
	if _, err := t.exec(sqlTaskFree, task.ID); err != nil {
		return err
	}
	return t.taskEvent(team.EventTaskReleased, who, task.ID, task.Status, team.TaskPending, releaseData{task.OwnerName, task.Attempt, why})
}

type releaseData struct {
	Owner   string `json:"owner"`
	Attempt int    `json:"attempt"`
	Why     string `json:"why"`
}

// fenced returns the task if ref is its current claim.
func (t *tx) fenced(ref TaskRef) (Task, error) {
	task, err := t.fencedFor(ref, false)
	if err == nil {
		err = notVerifying(task)
	}
	return task, err
}

// fencedFor is fenced for operations allowed during a verification; with
// review, it also accepts a task that is being reviewed.
func (t *tx) fencedFor(ref TaskRef, review bool) (Task, error) {
	task, err := t.task(ref.ID)
	if err != nil {
		return task, err
	}
	refuse := func(reason, format string, args ...any) (Task, error) {
		return task, team.Errorf(team.CodeConflict, format, args...).WithReason(reason)
	}
	switch {
	case task.Status == team.TaskCompleted || task.Status == team.TaskFailed:
		return refuse(team.ReasonAlreadyResolved, "task %s is %s already", task.ID, task.Status)
	case task.Status == team.TaskPending && task.Attempt == 0:
		return task, team.Errorf(team.CodeConflict, "task %s was never claimed", task.ID).WithReason(team.ReasonNotOwner).
			WithHint("teamctl task claim " + task.ID)
	case task.Status == team.TaskPending:
		return task, team.Errorf(team.CodeConflict, "task %s is not claimed: the claim was released or has expired", task.ID).
			WithReason(team.ReasonNotOwner).WithHint("teamctl task claim " + task.ID)
	case task.Owner != ref.Owner:
		return task, team.Errorf(team.CodeConflict, "task %s belongs to %s", task.ID, task.OwnerName).
			WithReason(team.ReasonNotOwner).WithHint("teamctl task show " + task.ID)
	case task.Attempt != ref.Attempt:
		return refuse(team.ReasonStaleAttempt, "task %s is at attempt %d, not %d", task.ID, task.Attempt, ref.Attempt)
	case task.Review != 0 && !review:
		return refuse(team.ReasonInReview, "task %s is being reviewed (approval %d)", task.ID, task.Review)
	}
	return task, nil
}

func errStatus(task Task, rule string) *team.Error {
	return team.Errorf(team.CodeConflict, "task %s is %s: %s", task.ID, task.Status, rule).WithReason(team.ReasonBadStatus)
}
