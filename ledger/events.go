package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"github.com/teamctl/teamctl/team"
)

const (
	sqlEventPut = `INSERT INTO events(at, who, via, what, id, before, after, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	sqlEvents   = `SELECT seq, at, who, via, what, id, before, after, data FROM events WHERE seq > ?`
	sqlLastSeq  = `SELECT coalesce(max(seq), 0) FROM events`
)

// EventFilter narrows Events. The zero value is every event.
type EventFilter struct {
	Who  string // agent name
	What string // "task.claimed", or "task." for a prefix
	ID   string // task id, member name or message id
}

// Event appends one event to the audit log and returns its sequence number. An
// empty Who becomes the ledger's actor, a zero At the current time.
func (l *Ledger) Event(ctx context.Context, e Event) (int64, error) {
	return write[int64](ctx, l, opEvent, e)
}

// Events returns at most limit events (0: all) after sequence number after, in order.
func (l *Ledger) Events(ctx context.Context, after int64, limit int, f EventFilter) ([]Event, error) {
	q, args := sqlEvents, []any{after}
	if f.Who != "" {
		q, args = q+" AND who = ?", append(args, f.Who)
	}
	if f.ID != "" {
		q, args = q+" AND id = ?", append(args, f.ID)
	}
	switch {
	case strings.HasSuffix(f.What, "."):
		q, args = q+" AND substr(what, 1, ?) = ?", append(args, len(f.What), f.What)
	case f.What != "":
		q, args = q+" AND what = ?", append(args, f.What)
	}
	q, args = limited(q+" ORDER BY seq", args, limit)
	return read(ctx, l.db, "read events", scanEvent, q, args...)
}

// LastEvent returns the sequence number of the newest event, 0 without one.
func (l *Ledger) LastEvent(ctx context.Context) (int64, error) {
	seqs, err := read(ctx, l.db, "read events", scanOne[int64], sqlLastSeq)
	if err != nil {
		return 0, err
	}
	return seqs[0], nil
}

func appendEvent(t *tx, e Event) (int64, error) {
	if e.What == "" {
		return 0, team.Errorf(team.CodeInvalid, "an event needs a name")
	}
	if len(e.Data) > 0 && !json.Valid(e.Data) {
		return 0, team.Errorf(team.CodeInvalid, "the data of event %s is not JSON", e.What)
	}
	if err := t.event(e); err != nil {
		return 0, err
	}
	seq, _, err := value[int64](t, sqlLastSeq)
	return seq, err
}

// event writes e, with the transaction's clock and actor as defaults.
func (t *tx) event(e Event) error {
	if e.Who == "" {
		e.Who = t.who
	}
	if e.Who == t.who {
		e.Via = t.via
	}
	if e.At == 0 {
		e.At = t.now
	}
	_, err := t.exec(sqlEventPut, e.At, e.Who, e.Via, e.What, e.ID, e.Before, e.After, jsonOrNull(e.Data))
	return err
}

func scanEvent(r *sql.Rows) (Event, error) {
	var e Event
	var data sql.NullString
	err := r.Scan(&e.Seq, &e.At, &e.Who, &e.Via, &e.What, &e.ID, &e.Before, &e.After, &data)
	e.Data = rawJSON(data)
	return e, err
}

func scanOne[T any](r *sql.Rows) (v T, err error) {
	err = r.Scan(&v)
	return v, err
}

func rawJSON(s sql.NullString) json.RawMessage {
	if !s.Valid {
		return nil
	}
	return json.RawMessage(s.String)
}

func limited(q string, args []any, limit int) (string, []any) {
	if limit <= 0 {
		return q, args
	}
	return q + " LIMIT ?", append(args, limit)
}
