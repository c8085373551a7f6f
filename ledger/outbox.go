package ledger

import (
	"context"
	"database/sql"
)

const sqlPostedTo = `SELECT ` + deliveryCols + `, ` + messageCols + `, 
		(SELECT color FROM members WHERE name = m.fromAgent COLLATE NOCASE AND removedAt IS NULL)
	FROM deliveries d INDEXED BY idx_deliveries_posted JOIN messages m ON m.id = d.message
	WHERE d.state = 'posted' AND d.session = ? ORDER BY d.seq`

// Unmailed is a message that is not yet in a mailbox.
type Unmailed struct {
	Outgoing
	Color *string // the sender's; nil if it has left
}

// PostedTo returns what was posted to a session but not mailed yet, in the
// order of posting.
func (l *Ledger) PostedTo(ctx context.Context, session string) ([]Unmailed, error) {
	return read(ctx, l.db, "read the outbox", func(r *sql.Rows) (p Unmailed, err error) {
		p.Outgoing, err = scanOutgoingAnd(r, &p.Color)
		return p, err
	}, sqlPostedTo, session)
}
