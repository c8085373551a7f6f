package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/teamctl/teamctl/team"
)

const taskCols = `id, subject, description, coalesce(activeForm, ''), status, coalesce(owner, ''), coalesce(ownerName, ''),
	coalesce(dependsOn, '[]'), coalesce(blockedBy, '[]'), metadata, priority, verify, attempt, coalesce(leaseUntil, 0),
	createdAt, coalesce(claimedAt, 0), coalesce(startedAt, 0), coalesce(completedAt, 0), result,
	maxRetries, retryBackoff, retries, notBefore, coalesce(review, 0), verifyBy, coalesce(verification, 0)`

const (
	sqlTaskGet = `SELECT ` + taskCols + ` FROM tasks WHERE id = ?`
	sqlTasks   = `SELECT ` + taskCols + ` FROM tasks WHERE true`
	// json_each returns true and false as 1 and 0.
	sqlMetadataHas = `EXISTS (SELECT 1 FROM json_each(metadata) m WHERE m.key = ?
		AND CASE m.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE CAST(m.value AS TEXT) END = ?)`
	// sqlCounts is one statement, so that the counts are consistent. Triggers
	// maintain task_counts; tasks become due without a write.
	sqlCounts = `WITH RECURSIVE ` + sqlStuck + `
		SELECT pending,
			ready + (SELECT count(*) FROM tasks INDEXED BY idx_tasks_later WHERE notBefore > 0 AND notBefore <= ? AND status = 'pending' AND unmet = 0),
			claimed, in_progress, completed, failed,
			(SELECT count(*) FROM stuck CROSS JOIN tasks t ON t.id = stuck.id WHERE t.status = 'pending')
		FROM task_counts`
)

// Task returns one task, or CodeNotFound (task_not_found).
func (l *Ledger) Task(ctx context.Context, id string) (Task, error) {
	ts, err := read(ctx, l.db, "read task "+id, scanTask, sqlTaskGet, id)
	if err == nil && len(ts) == 0 {
		err = errNoTask(id)
	}
	if err != nil {
		return Task{}, err
	}
	return ts[0], nil
}

// Tasks returns the tasks that match the filter, oldest first unless f.Newest.
func (l *Ledger) Tasks(ctx context.Context, f TaskFilter) ([]Task, error) {
	q, args := sqlTasks, []any(nil)
	if f.Status != "" {
		q, args = q+" AND status = ?", append(args, string(f.Status))
	}
	if f.Owner != "" {
		q, args = q+" AND owner = ?", append(args, f.Owner)
	}
	if f.OpenOnly {
		q += " AND status IN ('pending', 'claimed', 'in_progress')"
	}
	if f.IDs != nil {
		q, args = q+" AND id IN (SELECT value FROM json_each(?))", append(args, mustJSON(f.IDs))
	}
	for _, key := range slices.Sorted(maps.Keys(f.Metadata)) {
		q, args = q+" AND "+sqlMetadataHas, append(args, key, f.Metadata[key])
	}
	order := " ORDER BY seq, id"
	if f.Newest {
		order = " ORDER BY seq DESC, id DESC"
	}
	q, args = limited(q+order, args, f.Limit)
	return read(ctx, l.db, "read tasks", scanTask, q, args...)
}

// Counts returns the counts of the task board, all at one moment.
func (l *Ledger) Counts(ctx context.Context) (Counts, error) {
	rows, err := read(ctx, l.db, "count tasks", func(r *sql.Rows) (Counts, error) { return scanCounts(r) },
		sqlCounts, l.now().UnixMilli())
	if err == nil && len(rows) == 0 {
		err = errNoCounts()
	}
	if err != nil {
		return Counts{}, err
	}
	return rows[0], nil
}

func scanCounts(r interface{ Scan(dest ...any) error }) (c Counts, err error) {
	err = r.Scan(&c.Pending, &c.Ready, &c.Claimed, &c.InProgress, &c.Completed, &c.Failed, &c.Stuck)
	return c, err
}

// task reads a task inside a transaction.
func (t *tx) task(id string) (Task, error) {
	var task Task
	found, err := t.one(sqlTaskGet, func(r *sql.Rows) (err error) {
		task, err = scanTask(r)
		return err
	}, id)
	if err == nil && !found {
		err = errNoTask(id)
	}
	return task, err
}

// taskEvent logs an event of a task.
func (t *tx) taskEvent(what, who, id string, before, after team.TaskStatus, data any) error {
	e := Event{Who: who, What: what, ID: id, Before: string(before), After: string(after)}
	if data != nil {
		e.Data = json.RawMessage(mustJSON(data))
	}
	return t.event(e)
}

func scanTask(r *sql.Rows) (Task, error) { return scanTaskAnd(r) }

// scanTaskAnd is scanTask for a row with more columns after taskCols.
func scanTaskAnd(r *sql.Rows, more ...any) (Task, error) {
	var (
		t              Task
		deps, blocked  string
		meta, resultJS sql.NullString
	)
	into := []any{
		&t.ID, &t.Subject, &t.Description, &t.ActiveForm, &t.Status, &t.Owner, &t.OwnerName,
		&deps, &blocked, &meta, &t.Priority, &t.Verify, &t.Attempt, &t.LeaseUntil,
		&t.CreatedAt, &t.ClaimedAt, &t.StartedAt, &t.CompletedAt, &resultJS,
		&t.MaxRetries, &t.RetryBackoff, &t.Retries, &t.NotBefore, &t.Review, &t.VerifyBy, &t.Verification,
	}
	if err := r.Scan(append(into, more...)...); err != nil {
		return t, err
	}
	var err error
	if t.DependsOn, err = idList(deps); err != nil {
		return t, err
	}
	if t.BlockedBy, err = idList(blocked); err != nil {
		return t, err
	}
	t.Metadata = rawJSON(meta)
	if resultJS.Valid {
		t.Result = &Result{}
		err = json.Unmarshal([]byte(resultJS.String), t.Result)
	}
	return t, err
}

func idList(s string) ([]string, error) {
	if s == "[]" {
		return []string{}, nil
	}
	ids := []string{}
	err := json.Unmarshal([]byte(s), &ids)
	return ids, err
}

// errNoCounts is the error for a missing row of counts.
func errNoCounts() *team.Error {
	return team.Errorf(team.CodeUnavailable, "the task counts are missing").WithReason(reasonCorrupt).WithHint("teamctl doctor --repair")
}

func errNoTask(id string) *team.Error {
	return team.Errorf(team.CodeNotFound, "no task %q", id).
		WithReason(team.ReasonTaskNotFound).WithHint("teamctl task ls")
}

func itoa[T int | int64](n T) string { return strconv.FormatInt(int64(n), 10) }
