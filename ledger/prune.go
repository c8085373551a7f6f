package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/teamctl/teamctl/team"
)

// Prunable are events, and the messages of closed runs, all messages of a run
// or none, if none of them awaits delivery. A recipient that has left awaits
// nothing.
const (
	pruneRuns = `SELECT r.id FROM runs r WHERE r.endedAt IS NOT NULL AND r.endedAt < ?1
		AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.run = r.id AND (m.at >= ?1 OR m.seq > ?2))
		AND NOT EXISTS (SELECT 1 FROM messages m JOIN deliveries d ON d.message = m.id
			LEFT JOIN members to_ ON to_.sessionKey = d.session
			WHERE m.run = r.id AND d.state IN ('posted', 'mailed', 'held', 'injected', 'unknown') AND to_.sessionKey IS NOT NULL AND to_.removedAt IS NULL)`
	pruneMessages = `m.run IN (` + pruneRuns + `)`

	sqlPruneMsgList    = `SELECT ` + messageCols + ` FROM messages m WHERE ` + pruneMessages + ` ORDER BY m.seq`
	sqlPruneEventList  = `SELECT seq, at, who, what, id, before, after, data FROM events WHERE at < ? AND seq <= ? ORDER BY seq`
	sqlPruneMark       = `INSERT INTO counters(name, value) VALUES ('pruning', ?)`
	sqlPruneUnmark     = `DELETE FROM counters WHERE name = 'pruning'`
	sqlPruneDeliveries = `DELETE FROM deliveries WHERE message IN (SELECT m.id FROM messages m WHERE ` + pruneMessages + `)`
	sqlPruneMsgs       = `DELETE FROM messages WHERE id IN (SELECT m.id FROM messages m WHERE ` + pruneMessages + `)`
	sqlPruneEvents     = `DELETE FROM events WHERE at < ? AND seq <= ?`
	// For a task in progress they show what has passed.
	sqlPruneVerified = `DELETE FROM verifications WHERE endedAt > 0 AND endedAt < ? AND generation = ''
		AND task NOT IN (SELECT id FROM tasks WHERE status = 'in_progress')`
	sqlLastMessage = `SELECT coalesce(max(seq), 0) FROM messages`
)

// PruneMark limits a prune to what is older than Before and existed when the
// mark was made.
type PruneMark struct {
	Before   int64 `json:"before"` // Unix milliseconds
	Events   int64 `json:"events"` // greatest sequence numbers
	Messages int64 `json:"messages"`
}

// Pruned counts what a prune removed.
type Pruned struct {
	Events     int64 `json:"events"`
	Messages   int64 `json:"messages"`
	Deliveries int64 `json:"deliveries"`
}

// PruneMark returns a mark of what can be pruned now.
func (l *Ledger) PruneMark(ctx context.Context, before int64) (PruneMark, error) {
	m := PruneMark{Before: before}
	var err error
	if m.Events, err = l.LastEvent(ctx); err != nil {
		return m, err
	}
	seqs, err := read(ctx, l.db, "read messages", scanOne[int64], sqlLastMessage)
	if err != nil {
		return m, err
	}
	m.Messages = seqs[0]
	return m, nil
}

// Archive writes what a prune with the same mark would remove, as JSON lines
// {"event": ...} and {"message": ...}, and counts it.
func (l *Ledger) Archive(ctx context.Context, m PruneMark, w io.Writer) (Pruned, error) {
	var n Pruned
	enc := json.NewEncoder(w)
	events, err := read(ctx, l.db, "read old events", scanEvent, sqlPruneEventList, m.Before, m.Events)
	if err != nil {
		return n, err
	}
	for _, e := range events {
		if err := enc.Encode(map[string]Event{"event": e}); err != nil {
			return n, fmt.Errorf("write the archive: %w", err)
		}
		n.Events++
	}
	messages, err := read(ctx, l.db, "read old messages", scanMessage, sqlPruneMsgList, m.Before, m.Messages)
	if err != nil {
		return n, err
	}
	for _, msg := range messages {
		ds, err := l.Deliveries(ctx, msg.ID)
		if err != nil {
			return n, err
		}
		line := struct {
			Message    Message    `json:"message"`
			Deliveries []Delivery `json:"deliveries"`
		}{msg, ds}
		if err := enc.Encode(line); err != nil {
			return n, fmt.Errorf("write the archive: %w", err)
		}
		n.Messages++
		n.Deliveries += int64(len(ds))
	}
	return n, nil
}

// Prune removes old history: events, and the messages of runs closed before, if
// none awaits delivery. Tasks stay; the records of their verifications are
// removed, which their events contain too. The caller has archived it.
func (l *Ledger) Prune(ctx context.Context, m PruneMark) (Pruned, error) {
	return write[Pruned](ctx, l, opPrune, m)
}

func prune(t *tx, m PruneMark) (Pruned, error) {
	var n Pruned
	if m.Before <= 0 || m.Before > t.now {
		return n, team.Errorf(team.CodeInvalid, "the time of a prune must be in the past")
	}
	if _, err := t.exec(sqlPruneMark, m.Before); err != nil {
		return n, err
	}
	for _, step := range []struct {
		count *int64
		q     string
		upTo  int64
	}{
		{&n.Deliveries, sqlPruneDeliveries, m.Messages}, // first, because the messages determine the runs
		{&n.Messages, sqlPruneMsgs, m.Messages},
		{&n.Events, sqlPruneEvents, m.Events},
	} {
		var err error
		if *step.count, err = t.exec(step.q, m.Before, step.upTo); err != nil {
			return n, err
		}
	}
	if _, err := t.exec(sqlPruneVerified, m.Before); err != nil {
		return n, err
	}
	if _, err := t.exec(sqlPruneUnmark); err != nil {
		return n, err
	}
	return n, t.event(Event{What: team.EventHistoryPruned, Data: json.RawMessage(mustJSON(n))})
}
