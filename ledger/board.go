package ledger

import (
	"context"
	"database/sql"
	"errors"
)

// Board is a selection of the tasks, and the counts of all tasks, at one
// moment.
type Board struct {
	Tasks  []Task          // oldest first
	Stuck  map[string]bool // ids of those of Tasks that are pending because a dependency failed
	Counts Counts          // of all tasks
	Free   int             // pending without unmet dependencies, although maybe not yet due
}

const (
	// sqlStuck selects every task that depends, directly or not, on a failed
	// one. If no task waits for another, it skips the failed ones.
	sqlStuck = `stuck(id) AS (
			SELECT d.task FROM task_counts c CROSS JOIN tasks f CROSS JOIN task_deps d ON d.dependsOn = f.id
			WHERE c.pending > c.ready AND f.status = 'failed'
			UNION
			SELECT d.task FROM stuck s JOIN task_deps d ON d.dependsOn = s.id)`
	// sqlBoard reads each kind from its start in idx_tasks_status, and stops at
	// the ?1th task: a board of a million completed tasks costs no more than a
	// short one. Tasks in progress are all included, because they also appear
	// with their members.
	sqlBoard = `WITH RECURSIVE ` + sqlStuck + `,
		shown(id) AS (
			SELECT id FROM tasks WHERE status IN ('claimed', 'in_progress')
			UNION ALL
			SELECT id FROM (
				SELECT id FROM (SELECT id FROM tasks WHERE status = 'failed' ORDER BY completedAt DESC, seq DESC LIMIT ?1)
				UNION ALL
				SELECT id FROM (SELECT id FROM tasks WHERE status = 'pending' AND id NOT IN stuck ORDER BY completedAt, seq LIMIT ?1)
				UNION ALL
				SELECT id FROM (SELECT t.id FROM stuck s CROSS JOIN tasks t ON t.id = s.id WHERE t.status = 'pending' ORDER BY t.completedAt, t.seq LIMIT ?1)
				UNION ALL
				SELECT id FROM (SELECT id FROM tasks WHERE status = 'completed' ORDER BY completedAt DESC, seq DESC LIMIT ?1)
				LIMIT ?1))
		SELECT ` + taskCols + `, id IN stuck FROM tasks WHERE id IN shown ORDER BY seq, id`
	// sqlBoardOf selects the tasks in progress and those in a JSON array of
	// ids.
	sqlBoardOf = `WITH RECURSIVE ` + sqlStuck + `,
		shown(id) AS (
			SELECT id FROM tasks WHERE status IN ('claimed', 'in_progress')
			UNION
			SELECT value FROM json_each(?1))
		SELECT ` + taskCols + `, id IN stuck FROM tasks WHERE id IN shown ORDER BY seq, id`
	// sqlFree adds those that are not yet due to the ready ones.
	sqlFree = `SELECT ready + (SELECT count(*) FROM tasks INDEXED BY idx_tasks_later WHERE notBefore > 0 AND status = 'pending' AND unmet = 0)
		FROM task_counts`
)

// sqlInHand selects the tasks in progress and, for each session in a JSON
// array, the oldest task assigned to it but not begun.
const sqlInHand = `SELECT ` + taskCols + ` FROM tasks WHERE id IN (
		SELECT id FROM tasks INDEXED BY idx_tasks_status WHERE status IN ('claimed', 'in_progress') AND owner IN (SELECT value FROM json_each(?1))
		UNION ALL
		SELECT (SELECT t.id FROM tasks t INDEXED BY idx_tasks_given WHERE t.status = 'pending' AND t.owner IS NOT NULL AND t.owner = m.value
			ORDER BY t.seq LIMIT 1) FROM json_each(?1) m)
	ORDER BY status = 'pending', review IS NOT NULL OR verification IS NOT NULL, seq, id`

// InHand returns each session's current task: the oldest that it works on,
// otherwise the oldest that it has handed in (see Task.Verification and
// Task.Review), otherwise the oldest that is assigned to it. A session without a
// task is missing from the result.
func (l *Ledger) InHand(ctx context.Context, sessions []string) (map[string]Task, error) {
	list, err := read(ctx, l.db, "read tasks in hand", scanTask, sqlInHand, mustJSON(append([]string{}, sessions...)))
	out := make(map[string]Task, len(list))
	for _, t := range list {
		if _, has := out[t.Owner]; !has {
			out[t.Owner] = t
		}
	}
	return out, err
}

// Board reads all tasks in progress and, of the others, the first atMost in the
// order that matters to a person: failed (newest first), free and not yet due
// (oldest first), stuck, completed (newest first).
func (l *Ledger) Board(ctx context.Context, atMost int) (Board, error) {
	return l.board(ctx, sqlBoard, atMost)
}

// BoardOf reads all tasks in progress and those with the given ids that exist.
func (l *Ledger) BoardOf(ctx context.Context, ids []string) (Board, error) {
	return l.board(ctx, sqlBoardOf, mustJSON(append([]string{}, ids...)))
}

func (l *Ledger) board(ctx context.Context, query string, arg any) (b Board, err error) {
	r, err := l.db.reader()
	if err != nil {
		return b, err
	}
	// A read transaction, so that the list and the counts agree.
	one, err := r.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return b, l.db.asCoded("read the board", err)
	}
	err = errors.Join(b.read(ctx, one, query, arg, l.now().UnixMilli()), one.Rollback())
	if err != nil {
		return Board{}, l.db.asCoded("read the board", err)
	}
	return b, nil
}

func (b *Board) read(ctx context.Context, one *sql.Tx, query string, arg any, now int64) error {
	b.Tasks, b.Stuck = []Task{}, map[string]bool{}
	rows, err := one.QueryContext(ctx, query, arg)
	if err != nil {
		return err
	}
	err = drain(rows, func(r *sql.Rows) error {
		var stuck bool
		t, err := scanTaskAnd(r, &stuck)
		b.Tasks = append(b.Tasks, t)
		if stuck {
			b.Stuck[t.ID] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	if b.Counts, err = scanCounts(one.QueryRowContext(ctx, sqlCounts, now)); err != nil {
		return err
	}
	return one.QueryRowContext(ctx, sqlFree).Scan(&b.Free)
}
