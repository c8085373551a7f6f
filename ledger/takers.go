package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
)

// Takers lists the session keys of members that could take a task now or soon.
type Takers struct {
	Any     []string // take any task
	Run     []string // take only tasks with a command
	RunFree bool     // some member of Run also takes unassigned tasks
}

// sqlTakeable searches for a pending task without unmet dependencies, although
// maybe not yet due, that one of the takers may take. ?1 and ?2 are JSON arrays
// of session keys; ?3 and ?4 say whether some taker takes any unassigned task,
// and any unassigned task with a command.
const (
	takeable = `status = 'pending' AND unmet = 0 AND `
	freeOnes = `owner IS NULL AND (?3 OR ?4` + hasCommand + `)`
	ownOnes  = `owner IS NOT NULL AND (owner IN (SELECT value FROM json_each(?1)) OR owner IN (SELECT value FROM json_each(?2))` + hasCommand + `)`

	sqlTakeable = `SELECT EXISTS (SELECT 1 FROM tasks INDEXED BY idx_tasks_ready WHERE ?3 AND ` + takeable + `notBefore = 0 AND owner IS NULL)
		OR EXISTS (SELECT 1 FROM tasks INDEXED BY idx_tasks_command WHERE ?4 AND ` + takeable + `notBefore = 0 AND owner IS NULL` + hasCommand + `)
		OR EXISTS (SELECT 1 FROM tasks INDEXED BY idx_tasks_assigned WHERE ` + takeable + `notBefore = 0 AND owner IS NOT NULL
			AND owner IN (SELECT value FROM json_each(?1)))
		OR EXISTS (SELECT 1 FROM tasks INDEXED BY idx_tasks_assigned WHERE ` + takeable + `notBefore = 0 AND owner IS NOT NULL
			AND owner IN (SELECT value FROM json_each(?2))` + hasCommand + `)
		OR EXISTS (SELECT 1 FROM tasks INDEXED BY idx_tasks_later WHERE notBefore > 0 AND ` + takeable + `(` + freeOnes + ` OR ` + ownOnes + `))`
	sqlReadyTasks = `SELECT ` + taskCols + ` FROM tasks WHERE id IN (
		SELECT id FROM (SELECT id FROM tasks INDEXED BY idx_tasks_ready WHERE ` + takeable + `notBefore = 0 AND owner IS NULL ORDER BY priority DESC, seq LIMIT ?1)
		UNION ALL SELECT id FROM (SELECT id FROM tasks INDEXED BY idx_tasks_assigned WHERE ` + takeable + `notBefore = 0 AND owner IS NOT NULL LIMIT ?1)
		UNION ALL SELECT id FROM (SELECT id FROM tasks INDEXED BY idx_tasks_later WHERE notBefore > 0 AND ` + takeable + `true LIMIT ?1))
		ORDER BY seq LIMIT ?1`
	sqlTakeableOf = `SELECT EXISTS (SELECT 1 FROM tasks WHERE id IN (SELECT value FROM json_each(?5)) AND ` + takeable + `(` + freeOnes + ` OR ` + ownOnes + `))`
)

// Takeable reports whether one of the takers may take a pending task without
// unmet dependencies, among those with the given ids, if any.
func (l *Ledger) Takeable(ctx context.Context, by Takers, ids ...string) (bool, error) {
	list := func(keys []string) string { return mustJSON(append([]string{}, keys...)) }
	q, args := sqlTakeable, []any{list(by.Any), list(by.Run), len(by.Any) > 0, by.RunFree}
	if len(ids) > 0 {
		q, args = sqlTakeableOf, append(args, list(ids))
	}
	some, err := read(ctx, l.db, "look for tasks that can be taken", func(r *sql.Rows) (yes bool, err error) {
		return yes, r.Scan(&yes)
	}, q, args...)
	return err == nil && some[0], err
}

// ReadyTasks returns up to limit pending tasks without unmet dependencies,
// although maybe not yet due, in the order of their numbers.
func (l *Ledger) ReadyTasks(ctx context.Context, limit int) ([]Task, error) {
	return read(ctx, l.db, "read ready tasks", scanTask, sqlReadyTasks, limit)
}

// HasCommand reports whether a worker may take the task, which means running
// metadata.run.
func (t Task) HasCommand() bool {
	var has struct {
		Run any `json:"run"`
	}
	if len(t.Metadata) == 0 || json.Unmarshal(t.Metadata, &has) != nil || has.Run == nil {
		return false
	}
	text, isText := has.Run.(string)
	return !isText || strings.Trim(text, "\t\n\r ") != ""
}

// TakenBy reports whether one of the takers may take the task, which is pending
// and has no unmet dependencies: [Ledger.Takeable] for a task that was already
// read.
func (t Task) TakenBy(by Takers) bool {
	if t.Owner == "" {
		return len(by.Any) > 0 || by.RunFree && t.HasCommand()
	}
	return slices.Contains(by.Any, t.Owner) || slices.Contains(by.Run, t.Owner) && t.HasCommand()
}
