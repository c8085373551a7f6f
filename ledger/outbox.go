package ledger

import "context"

const sqlOutboxOf = `SELECT ` + deliveryCols + `, ` + messageCols + ` FROM deliveries d INDEXED BY idx_deliveries_posted
	JOIN messages m ON m.id = d.message WHERE d.state = 'posted' AND d.session = ? AND d.seq < ? AND m.fromAgent = ? ORDER BY d.seq`

// UndeliveredBefore returns what from has posted to a session before a sequence
// number and nobody has mailed yet, in the order it was posted: it comes first.
func (l *Ledger) UndeliveredBefore(ctx context.Context, from, session string, seq int64) ([]Outgoing, error) {
	return read(ctx, l.db, "read the outbox", scanOutgoing, sqlOutboxOf, session, seq, from)
}
