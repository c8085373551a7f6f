package ledger

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

const setClaim = `UPDATE tasks SET status = 'claimed', owner = ?1, ownerName = ?2, claimedAt = ?3, leaseUntil = ?4,
	attempt = attempt + 1, startedAt = NULL, completedAt = NULL, result = NULL `

const (
	// What was assigned to the claimer comes before what is free for all.
	sqlClaimNext = setClaim + `WHERE id = coalesce(
		(SELECT id FROM tasks INDEXED BY idx_tasks_assigned
		  WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NOT NULL AND owner = ?1 ORDER BY priority DESC, seq LIMIT 1),
		(SELECT id FROM tasks INDEXED BY idx_tasks_ready
		  WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NULL ORDER BY priority DESC, seq LIMIT 1))
		RETURNING ` + taskCols
	sqlClaimAssigned = setClaim + `WHERE id = (SELECT id FROM tasks INDEXED BY idx_tasks_assigned
		  WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NOT NULL AND owner = ?1 ORDER BY priority DESC, seq LIMIT 1)
		RETURNING ` + taskCols
	sqlClaimID = setClaim + `WHERE id = ?5 AND status = 'pending' AND unmet = 0 AND notBefore = 0 AND (owner IS NULL OR owner = ?1)
		RETURNING ` + taskCols
	sqlMemberName = `SELECT name, removedAt IS NOT NULL FROM members WHERE sessionKey = ?`
)

// ClaimIn says who claims what.
type ClaimIn struct {
	Owner string        `json:"owner"`           // session key
	ID    string        `json:"id,omitempty"`    // empty: the oldest ready task of the highest priority
	Lease time.Duration `json:"lease,omitempty"` // default Lease
	// OneOnly refuses (agent_busy) when Owner holds another task.
	OneOnly bool `json:"oneOnly,omitempty"`
}

// Claim makes Owner the owner of a ready task. Tasks assigned to it come first;
// while AutoClaim is off for it, a claim without an ID takes no others.
// Without an ID, and with nothing ready, it returns nil without an error; leases
// that have run out are expired before it says so. With an ID the refusals are
// CodeNotFound task_not_found and CodeConflict already_claimed,
// already_resolved, blocked, not_yet, and agent_busy. A member that was removed is CodeDenied.
func (l *Ledger) Claim(ctx context.Context, in ClaimIn) (*Task, error) {
	return write[*Task](ctx, l, opTaskClaim, in)
}

func claimTask(t *tx, in ClaimIn) (*Task, error) {
	if in.Owner == "" {
		return nil, team.Errorf(team.CodeInvalid, "a claim needs an owner")
	}
	name, err := t.actor(in.Owner)
	if err != nil {
		return nil, err
	}
	if in.Lease <= 0 {
		in.Lease = Lease
	}
	if in.OneOnly {
		if err := t.checkBusy(in); err != nil {
			return nil, err
		}
	}
	task, err := t.claim(in, name)
	if err != nil || task != nil {
		return task, err
	}
	if in.ID != "" {
		return nil, t.whyNot(in)
	}
	// Nobody else may be there to give back what a dead owner holds.
	expired, err := t.expireLeases()
	if err != nil || len(expired) == 0 {
		return nil, err
	}
	return t.claim(in, name)
}

func (t *tx) claim(in ClaimIn, name string) (*Task, error) {
	if _, err := t.exec(sqlTasksDue, t.now); err != nil {
		return nil, err
	}
	q, args := sqlClaimNext, []any{in.Owner, name, t.now, t.now + in.Lease.Milliseconds()}
	if in.ID != "" {
		q, args = sqlClaimID, append(args, in.ID)
	} else if auto, err := t.autoClaim(name); err != nil {
		return nil, err
	} else if !auto {
		q = sqlClaimAssigned
	}
	var task Task
	found, err := t.one(q, func(r *sql.Rows) (err error) {
		task, err = scanTask(r)
		return err
	}, args...)
	if err != nil || !found {
		return nil, err
	}
	t.wrote = true
	err = t.taskEvent("task.claimed", name, task.ID, team.TaskPending, team.TaskClaimed, attemptData{task.Attempt})
	return &task, err
}

type attemptData struct {
	Attempt int `json:"attempt"`
}

// whyNot explains a refused claim of one task.
func (t *tx) whyNot(in ClaimIn) error {
	task, err := t.task(in.ID)
	if err != nil {
		return err
	}
	switch task.Status {
	case team.TaskCompleted, team.TaskFailed:
		return team.Errorf(team.CodeConflict, "task %s is %s already", task.ID, task.Status).WithReason(ReasonAlreadyResolved)
	case team.TaskClaimed, team.TaskInProgress:
		if task.Owner == in.Owner {
			return team.Errorf(team.CodeConflict, "task %s is claimed by this agent already", task.ID).WithReason(ReasonAlreadyClaimed)
		}
	case team.TaskPending:
		if len(task.BlockedBy) > 0 {
			return team.Errorf(team.CodeConflict, "task %s is blocked by %s", task.ID, strings.Join(task.BlockedBy, ", ")).WithReason(ReasonBlocked)
		}
		if task.NotBefore > t.now {
			wait := time.Duration(task.NotBefore-t.now) * time.Millisecond
			return team.Errorf(team.CodeConflict, "task %s waits for its retry, %v more", task.ID, wait).
				WithReason(ReasonNotYet).WithHint("teamctl task retry " + task.ID + " makes it ready now")
		}
	}
	e := team.Errorf(team.CodeConflict, "Task already claimed by another agent").WithReason(ReasonAlreadyClaimed)
	if task.OwnerName != "" {
		e = e.WithHint("task " + task.ID + " belongs to " + task.OwnerName)
	}
	return e
}

// actor is the name of a session for the log. An unknown session is its own
// name; one that has left the roster may not act any more.
func (t *tx) actor(session string) (string, error) {
	name, removed := "", false
	found, err := t.one(sqlMemberName, func(r *sql.Rows) error { return r.Scan(&name, &removed) }, session)
	switch {
	case err != nil:
		return "", err
	case !found:
		return session, nil
	case removed:
		return "", team.Errorf(team.CodeDenied, "%s has left the team", name).WithReason(ReasonMemberRemoved)
	}
	return name, nil
}
