package ledger

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// FAIL, not ABORT: the savepoint around the whole operation (errUndo) undoes
// what it did before SQLite refuses a statement, so the statement needs no
// journal of its own, which would be a copy of each page that it touches.
const setClaim = `UPDATE OR FAIL tasks SET status = 'claimed', owner = ?1, ownerName = ?2, claimedAt = ?3, leaseUntil = ?4,
	attempt = attempt + 1, startedAt = NULL, completedAt = NULL, result = NULL `

const (
	// Tasks assigned to the claimer come before unassigned ones.
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
	// A worker only runs commands; tasks without one wait for another member.
	hasCommand       = ` AND trim(coalesce(json_extract(metadata, '$.run'), ''), char(9, 10, 13, 32)) <> ''`
	sqlClaimRunnable = setClaim + `WHERE id = coalesce(
		(SELECT id FROM tasks INDEXED BY idx_tasks_assigned
		  WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NOT NULL AND owner = ?1` + hasCommand + ` ORDER BY priority DESC, seq LIMIT 1),
		(SELECT id FROM tasks INDEXED BY idx_tasks_command
		  WHERE ?5 AND status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NULL` + hasCommand + ` ORDER BY priority DESC, seq LIMIT 1))
		RETURNING ` + taskCols
	sqlRunnable = `SELECT EXISTS (SELECT 1 FROM tasks INDEXED BY idx_tasks_assigned
		  WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NOT NULL AND owner = ?1` + hasCommand + `)
		OR EXISTS (SELECT 1 FROM tasks INDEXED BY idx_tasks_command
		  WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NULL` + hasCommand + `)
		OR EXISTS (SELECT 1 FROM tasks INDEXED BY idx_tasks_later WHERE notBefore > 0 AND notBefore <= ?2)`
	// What a claim must know first, in one statement, because a claim is the
	// most frequent write.
	sqlClaimFacts = `SELECT coalesce(m.name, ?1), coalesce(m.removedAt, 0),
		(SELECT value FROM settings WHERE name = '` + settingAutoClaim + `'),
		EXISTS (SELECT 1 FROM tasks INDEXED BY idx_tasks_later WHERE notBefore > 0 AND notBefore <= ?2)
		FROM (SELECT 1) LEFT JOIN members m ON m.sessionKey = ?1`
)

// ClaimIn describes a claim.
type ClaimIn struct {
	Owner string        `json:"owner"`           // session key
	ID    string        `json:"id,omitempty"`    // empty: the oldest ready task of the highest priority
	Lease time.Duration `json:"lease,omitempty"` // default Lease
	// OneOnly refuses the claim (agent_busy) if Owner holds another task.
	OneOnly bool `json:"oneOnly,omitempty"`
	// Runnable limits a claim without an ID to tasks with a command
	// (metadata.run).
	Runnable bool `json:"runnable,omitempty"`
}

// Runnable reports whether a claim of owner with ClaimIn.Runnable may find a
// task. It is for idle workers: unlike a claim, it does not take the writers'
// lock.
func (l *Ledger) Runnable(ctx context.Context, owner string) (bool, error) {
	some, err := read(ctx, l.db, "look for tasks with a command", func(r *sql.Rows) (yes bool, err error) {
		return yes, r.Scan(&yes)
	}, sqlRunnable, owner, time.Now().UnixMilli())
	return err == nil && some[0], err
}

// Claim makes Owner the owner of a ready task. Tasks assigned to Owner come
// first; while AutoClaim is off for it, a claim without an ID takes no others.
// Without an ID, and without a ready task, it returns nil and no error, after
// expiring leases. With an ID the errors are CodeNotFound task_not_found and
// CodeConflict already_claimed, already_resolved, blocked, not_yet, and
// agent_busy. For a removed member the error is CodeDenied.
func (l *Ledger) Claim(ctx context.Context, in ClaimIn) (*Task, error) {
	return write[*Task](ctx, l, opTaskClaim, in)
}

func claimTask(t *tx, in ClaimIn) (*Task, error) {
	if in.Owner == "" {
		return nil, team.Errorf(team.CodeInvalid, "a claim needs an owner")
	}
	facts, err := t.claimFacts(in.Owner)
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
	task, err := t.claim(in, facts)
	if err != nil || task != nil {
		return task, err
	}
	if in.ID != "" {
		if lifted, err := t.liftHold(in, facts.name); err != nil || lifted {
			if err != nil {
				return nil, err
			}
			return t.claim(in, facts)
		}
		return nil, t.whyNot(in)
	}
	// Without a supervisor, no other process returns the tasks of a dead owner.
	expired, err := t.expireLeases()
	if err != nil || len(expired) == 0 {
		return nil, err
	}
	return t.claim(in, facts)
}

// claimFacts holds what decides a claim besides the tasks.
type claimFacts struct {
	name string // of the claimer; an unknown session is its own name
	auto bool   // it takes unassigned tasks
}

// claimFacts reads them, and makes ready the tasks that have become due.
func (t *tx) claimFacts(session string) (f claimFacts, err error) {
	var (
		auto    sql.NullString
		removed int64
		due     bool
	)
	if _, err := t.one(sqlClaimFacts, func(r *sql.Rows) error {
		return r.Scan(&f.name, &removed, &auto, &due)
	}, session, t.now); err != nil {
		return f, err
	}
	if removed != 0 {
		return f, errHasLeft(f.name)
	}
	if f.auto, err = autoClaimOn(auto.String, f.name); err != nil || !due {
		return f, err
	}
	_, err = t.exec(sqlTasksDue, t.now)
	return f, err
}

func (t *tx) claim(in ClaimIn, facts claimFacts) (*Task, error) {
	q, args := sqlClaimNext, []any{in.Owner, facts.name, t.now, t.now + in.Lease.Milliseconds()}
	switch {
	case in.ID != "":
		q, args = sqlClaimID, append(args, in.ID)
	case in.Runnable:
		q, args = sqlClaimRunnable, append(args, facts.auto)
	case !facts.auto:
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
	err = t.taskEvent(team.EventTaskClaimed, facts.name, task.ID, team.TaskPending, team.TaskClaimed, attemptData{task.Attempt})
	return &task, err
}

type attemptData struct {
	Attempt int `json:"attempt"`
}

// whyNot explains why the claim of one task is refused.
func (t *tx) whyNot(in ClaimIn) error {
	task, err := t.task(in.ID)
	if err != nil {
		return err
	}
	switch task.Status {
	case team.TaskCompleted, team.TaskFailed:
		return team.Errorf(team.CodeConflict, "task %s is %s already", task.ID, task.Status).WithReason(team.ReasonAlreadyResolved)
	case team.TaskClaimed, team.TaskInProgress:
		if task.Owner == in.Owner {
			return team.Errorf(team.CodeConflict, "task %s is already claimed by this agent", task.ID).WithReason(team.ReasonAlreadyClaimed)
		}
	case team.TaskPending:
		if len(task.BlockedBy) > 0 {
			return team.Errorf(team.CodeConflict, "task %s depends on %s, not completed yet", task.ID, strings.Join(task.BlockedBy, ", ")).WithReason(team.ReasonBlocked)
		}
		if task.NotBefore > t.now {
			wait := time.Duration(task.NotBefore-t.now) * time.Millisecond
			return team.Errorf(team.CodeConflict, "task %s cannot be claimed for another %v: it was just released, or waits for its retry", task.ID, wait).
				WithReason(team.ReasonNotYet).WithHint("teamctl task retry " + task.ID + " makes it ready now")
		}
	}
	e := team.Errorf(team.CodeConflict, "Task already claimed by another agent").WithReason(team.ReasonAlreadyClaimed)
	if task.OwnerName != "" {
		e = e.WithHint("task " + task.ID + " belongs to " + task.OwnerName)
	}
	return e
}

func errHasLeft(name string) error {
	return team.Errorf(team.CodeDenied, "%s has left the team", name).WithReason(team.ReasonMemberRemoved)
}
