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
	sqlPruneEventList  = `SELECT seq, at, who, via, what, id, before, after, data FROM events WHERE at < ? AND seq <= ? ORDER BY seq`
	sqlPruneMark       = `INSERT INTO counters(name, value) VALUES ('pruning', ?)`
	sqlPruneUnmark     = `DELETE FROM counters WHERE name = 'pruning'`
	sqlPruneDeliveries = `DELETE FROM deliveries WHERE message IN (SELECT m.id FROM messages m WHERE ` + pruneMessages + `)`
	sqlPruneMsgs       = `DELETE FROM messages WHERE id IN (SELECT m.id FROM messages m WHERE ` + pruneMessages + `)`
	sqlPruneEvents     = `DELETE FROM events WHERE at < ? AND seq <= ?`
	// For a task in progress they show what has passed.
	sqlPruneVerified = `DELETE FROM verifications WHERE endedAt > 0 AND endedAt < ? AND generation = ''
		AND task NOT IN (SELECT id FROM tasks WHERE status = 'in_progress')`
	sqlLastMessage = `SELECT coalesce(max(seq), 0) FROM messages`
	sqlLastEntry   = `SELECT coalesce(max(id), 0) FROM session_entries`

	// Closed sessions whose transcript is still here, all of it older than the mark. Their rows and
	// those of their turns stay: usage is counted from them.
	pruneSessions = `SELECT s.session_key FROM sessions s WHERE s.state = 'closed' AND s.updated_at < ?1
		AND EXISTS (SELECT 1 FROM session_entries e WHERE e.session = s.session_key AND e.id <= ?2)
		AND NOT EXISTS (SELECT 1 FROM session_entries e WHERE e.session = s.session_key AND e.id > ?2)
		AND NOT EXISTS (SELECT 1 FROM turn_jobs j WHERE j.session = s.session_key AND j.state IN ('queued', 'running'))`
	sqlPruneSessionList = pruneSessions + ` ORDER BY s.created_at, s.session_key`
	sqlPruneCalls       = `DELETE FROM tool_calls WHERE session IN (` + pruneSessions + `)`
	sqlPruneBacklog     = `DELETE FROM session_backlog WHERE session IN (` + pruneSessions + `)`
	sqlPruneEntries     = `DELETE FROM session_entries WHERE session IN (` + pruneSessions + `)`
	sqlCallsOf          = `SELECT ` + callCols + ` FROM tool_calls WHERE session = ? ORDER BY id`
)

// PruneMark limits a prune to what is older than Before and existed when the
// mark was made.
type PruneMark struct {
	Before   int64 `json:"before"` // Unix milliseconds
	Events   int64 `json:"events"` // greatest sequence numbers
	Messages int64 `json:"messages"`
	Entries  int64 `json:"entries,omitempty"` // greatest id of an entry of a transcript
}

// Pruned counts what a prune removed.
type Pruned struct {
	Events     int64 `json:"events"`
	Messages   int64 `json:"messages"`
	Deliveries int64 `json:"deliveries"`
	Sessions   int64 `json:"sessions,omitempty"` // closed conversations whose transcript was removed
	Entries    int64 `json:"entries,omitempty"`
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
	ids, err := read(ctx, l.db, "read transcripts", scanOne[int64], sqlLastEntry)
	if err != nil {
		return m, err
	}
	m.Entries = ids[0]
	return m, nil
}

// Archive writes what a prune with the same mark would remove, as JSON lines
// {"event": ...}, {"message": ...}, {"session": ...} and, after its session, {"entry": ...} and
// {"call": ...}, and counts it.
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
	keys, err := read(ctx, l.db, "read closed sessions", scanOne[string], sqlPruneSessionList, m.Before, m.Entries)
	if err != nil {
		return n, err
	}
	for _, key := range keys {
		entries, err := l.archiveSession(ctx, key, enc)
		if err != nil {
			return n, err
		}
		n.Sessions++
		n.Entries += entries
	}
	return n, nil
}

// archiveSession writes a session with its turns, then each entry and each call of it.
func (l *Ledger) archiveSession(ctx context.Context, key string, enc *json.Encoder) (n int64, err error) {
	s, err := l.Session(ctx, key)
	if err != nil {
		return 0, err
	}
	turns, err := l.TurnJobs(ctx, JobFilter{Session: key})
	if err != nil {
		return 0, err
	}
	entries, err := l.Entries(ctx, key, 0, 0)
	if err != nil {
		return 0, err
	}
	calls, err := read(ctx, l.db, "read calls of "+key, scanCall, sqlCallsOf, key)
	if err != nil {
		return 0, err
	}
	lines := []any{struct {
		Session Session   `json:"session"`
		Turns   []TurnJob `json:"turns"`
	}{s, turns}}
	for _, e := range entries {
		lines = append(lines, map[string]Entry{"entry": e})
	}
	for _, c := range calls {
		lines = append(lines, map[string]ToolCall{"call": c})
	}
	for _, line := range lines {
		if err := enc.Encode(line); err != nil {
			return 0, fmt.Errorf("write the archive: %w", err)
		}
	}
	return int64(len(entries)), nil
}

// Prune removes old history: events, the messages of runs closed before, if
// none awaits delivery, and the transcripts of closed sessions. Tasks stay; the records of their verifications are
// removed, which their events contain too. The caller has archived it.
func (l *Ledger) Prune(ctx context.Context, m PruneMark) (Pruned, error) {
	return write[Pruned](ctx, l, opPrune, m)
}

func prune(t *tx, m PruneMark) (Pruned, error) {
	var n Pruned
	if m.Before <= 0 || m.Before > t.now {
		return n, team.Errorf(team.CodeInvalid, "the time of a prune must be in the past")
	}
	closed, err := column[string](t, sqlPruneSessionList, m.Before, m.Entries)
	if err != nil {
		return n, err
	}
	n.Sessions = int64(len(closed))
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
		{new(int64), sqlPruneCalls, m.Entries}, // before the entries, because those determine the sessions
		{new(int64), sqlPruneBacklog, m.Entries},
		{&n.Entries, sqlPruneEntries, m.Entries},
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
