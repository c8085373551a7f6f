package ledger

import (
	"context"
	"database/sql"
)

// Messages that the supervisor posts in a member's name are no evidence of the
// member; only kinds that nothing else sends count.
const sqlTakesPart = `SELECT EXISTS (SELECT 1 FROM deliveries INDEXED BY idx_deliveries_session
		WHERE session = ?1 AND at >= ?3 AND state IN ('read', 'answered'))
	OR EXISTS (SELECT 1 FROM messages WHERE fromAgent = ?2 AND at >= ?3
		AND kind IN ('message', 'broadcast', 'task_request', 'task_response', 'info', 'error'))
	OR EXISTS (SELECT 1 FROM events WHERE who = ?2 AND at >= ?3
		AND what IN ('task.created', 'task.claimed', 'task.updated', 'task.started', 'task.completed'))`

// TakesPart reports whether a member has read or sent mail or worked on tasks
// by itself since a time in Unix milliseconds, that is, whether its program
// uses the team at all.
func (l *Ledger) TakesPart(ctx context.Context, m Member, since int64) (bool, error) {
	out, err := read(ctx, l.db, "look for what "+m.Name+" has done", func(r *sql.Rows) (does bool, err error) {
		return does, r.Scan(&does)
	}, sqlTakesPart, m.SessionKey, m.Name, since)
	return err == nil && len(out) == 1 && out[0], err
}
