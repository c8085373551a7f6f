package ledger

import (
	"context"
	"time"
)

const (
	sqlLeaseRenew = `UPDATE tasks SET leaseUntil = ? WHERE owner = ? AND status IN ('claimed', 'in_progress') AND coalesce(leaseUntil, 0) < ? AND review IS NULL AND verification IS NULL`
	// A supervised owner that is alive keeps its task even if its lease was not
	// renewed: the supervisor was away, the agent was not.
	sqlLeaseLapsed = `SELECT id FROM tasks INDEXED BY idx_tasks_lease
		WHERE leaseUntil IS NOT NULL AND leaseUntil < ? AND status IN ('claimed', 'in_progress') AND verification IS NULL
		AND NOT EXISTS (SELECT 1 FROM members m WHERE m.sessionKey = tasks.owner AND ` + supervisedAlive + `)
		ORDER BY seq`
	// The lead is not a child of the supervisor, so its row does not show whether
	// it is alive.
	supervisedAlive  = `m.removedAt IS NULL AND m.role = 'member' AND m.observed IN ('starting', 'running')`
	sqlOwnerHolds    = `SELECT id FROM tasks WHERE owner = ? AND status IN ('claimed', 'in_progress') AND review IS NULL AND verification IS NULL ORDER BY seq`
	sqlOwnerAssigned = `UPDATE tasks SET owner = NULL, ownerName = NULL WHERE owner = ? AND status = 'pending'`
)

// RenewLeases extends the claims of live owners to lease (0: Lease) from now
// and returns the number of tasks.
func (l *Ledger) RenewLeases(ctx context.Context, sessions []string, lease time.Duration) (int64, error) {
	if len(sessions) == 0 {
		return 0, nil
	}
	return write[int64](ctx, l, opLeasesRenew, renewArgs{sessions, lease})
}

// ExpireLeases returns tasks with an expired lease to pending, and queues turns
// with one again, unless their owner is a supervised member observed alive; a
// turn is its only while the generation is the same. It returns the ids of the
// tasks.
func (l *Ledger) ExpireLeases(ctx context.Context) ([]string, error) {
	return write[[]string](ctx, l, opLeasesExpire, none{})
}

// ReleaseOwner returns everything that a dead or removed session holds to
// pending, drops its assignments, and rejects its requests. It returns the ids
// of the tasks it had claimed; a task being verified or reviewed stays, since
// the work on it is done.
func (l *Ledger) ReleaseOwner(ctx context.Context, session, why string) ([]string, error) {
	return write[[]string](ctx, l, opOwnerRelease, ownerArgs{session, why})
}

type renewArgs struct {
	Sessions []string      `json:"sessions"`
	Lease    time.Duration `json:"lease"`
}

type ownerArgs struct {
	Session string `json:"session"`
	Why     string `json:"why"`
}

func renewLeases(t *tx, a renewArgs) (int64, error) {
	if a.Lease <= 0 {
		a.Lease = Lease
	}
	until, total := t.now+a.Lease.Milliseconds(), int64(0)
	for _, s := range a.Sessions {
		n, err := t.exec(sqlLeaseRenew, until, s, until)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func expireLeases(t *tx, _ none) ([]string, error) { return t.expireLeases() }

func (t *tx) expireLeases() ([]string, error) {
	late, err := t.jobs(sqlJobsExpired, t.now)
	if err != nil {
		return nil, err
	}
	if _, err := t.recoverAll(late); err != nil {
		return nil, err
	}
	ids, err := column[string](t, sqlLeaseLapsed, t.now)
	if err != nil {
		return nil, err
	}
	return t.freeAll(ids, "lease expired")
}

func releaseOwner(t *tx, a ownerArgs) ([]string, error) {
	ids, err := column[string](t, sqlOwnerHolds, a.Session)
	if err != nil {
		return nil, err
	}
	if _, err := t.exec(sqlOwnerAssigned, a.Session); err != nil {
		return nil, err
	}
	if err := t.rejectOf(a.Session, a.Why); err != nil {
		return nil, err
	}
	if _, err := recoverTurns(t, ClaimTurnIn{Member: a.Session}); err != nil {
		return nil, err
	}
	return t.freeAll(ids, a.Why)
}

func (t *tx) freeAll(ids []string, why string) ([]string, error) {
	for _, id := range ids {
		task, err := t.task(id)
		if err != nil {
			return nil, err
		}
		if err := t.free(task, "", why); err != nil {
			return nil, err
		}
	}
	return append([]string{}, ids...), nil
}
