package ledger

import (
	"encoding/json"
	"time"

	"github.com/teamctl/teamctl/team"
)

const (
	sqlTaskLater = `UPDATE tasks SET status = 'pending', owner = NULL, ownerName = NULL, claimedAt = NULL, startedAt = NULL,
		completedAt = NULL, leaseUntil = NULL, result = NULL, retries = retries + 1, notBefore = ? WHERE id = ?`
	sqlTaskFresh = `UPDATE tasks SET retries = 0 WHERE id = ?`
	sqlTasksDue  = `UPDATE tasks INDEXED BY idx_tasks_later SET notBefore = 0 WHERE notBefore > 0 AND notBefore <= ?`
	sqlNextDue   = `SELECT coalesce(min(notBefore), 0) FROM tasks INDEXED BY idx_tasks_later WHERE notBefore > 0 AND notBefore > ?`
)

const (
	// DefaultBackoff is the default wait before the first retry of a task.
	DefaultBackoff = time.Second
	// MaxBackoff limits the doubled wait.
	MaxBackoff = 10 * time.Minute
	// MaxRetries limits the retries of a task.
	MaxRetries = 100
)

// policy returns the retry policy of the task, from its fields or its metadata.
func (n NewTask) policy() (RetryPolicy, error) {
	p := n.RetryPolicy
	if p == (RetryPolicy{}) && len(n.Metadata) > 0 {
		var inside struct {
			MaxRetries   json.RawMessage `json:"maxRetries"`
			RetryBackoff json.RawMessage `json:"retryBackoff"`
		}
		_ = json.Unmarshal(n.Metadata, &inside) // checked to be an object
		if len(inside.MaxRetries) > 0 && json.Unmarshal(inside.MaxRetries, &p.MaxRetries) != nil {
			return p, team.Errorf(team.CodeInvalid, "maxRetries of a task is a number, not %s", inside.MaxRetries)
		}
		if len(inside.RetryBackoff) > 0 && json.Unmarshal(inside.RetryBackoff, &p.RetryBackoff) != nil {
			return p, team.Errorf(team.CodeInvalid, "retryBackoff of a task is a number of milliseconds, not %s", inside.RetryBackoff)
		}
	}
	switch {
	case p.MaxRetries < 0 || p.RetryBackoff < 0:
		return p, team.Errorf(team.CodeInvalid, "maxRetries and retryBackoff of a task cannot be negative")
	case p.MaxRetries > MaxRetries:
		return p, team.Errorf(team.CodeLimit, "a task asks for %d retries, the limit is %d", p.MaxRetries, MaxRetries).WithReason(team.ReasonTooMany)
	case p.RetryBackoff > MaxBackoff.Milliseconds():
		return p, team.Errorf(team.CodeLimit, "the retry backoff of a task is at most %v", MaxBackoff).WithReason(team.ReasonTooLong)
	}
	return p, nil
}

// backoff returns the wait before the retry that follows n others.
func (p RetryPolicy) backoff(n int) int64 {
	wait := p.RetryBackoff
	if wait == 0 {
		wait = DefaultBackoff.Milliseconds()
	}
	for ; n > 0 && wait < MaxBackoff.Milliseconds(); n-- {
		wait *= 2
	}
	return min(wait, MaxBackoff.Milliseconds())
}

type retryData struct {
	Attempt   int    `json:"attempt"`
	Retry     int    `json:"retry"` // starting at 1
	Of        int    `json:"of"`
	NotBefore int64  `json:"notBefore"`
	Result    Result `json:"result"` // of the attempt that failed
}

// retryLater makes a failed task claimable again after a wait.
func (t *tx) retryLater(task Task, res Result) error {
	at := t.now + task.backoff(task.Retries)
	if _, err := t.exec(sqlTaskLater, at, task.ID); err != nil {
		return err
	}
	return t.taskEvent(team.EventTaskRetrying, task.OwnerName, task.ID, task.Status, team.TaskPending,
		retryData{task.Attempt, task.Retries + 1, task.MaxRetries, at, res})
}
