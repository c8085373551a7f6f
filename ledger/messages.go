package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/teamctl/teamctl/team"
)

const messageCols = `m.id, m.seq, m.run, m.kind, m.fromAgent, coalesce(m.toAgent, ''), coalesce(m.parent, ''), m.hop,
	coalesce(m.idemKey, ''), m.requestId, m.text, m.summary, m.payload, m.at`

const (
	sqlMessages   = `SELECT ` + messageCols + ` FROM messages m WHERE true`
	sqlMessageGet = sqlMessages + ` AND m.id = ?`
	// The sender may have had another name when it first sent the message.
	sqlMessageIdm = sqlMessages + ` AND m.run = ?1 AND m.idemKey = ?3 AND m.fromAgent IN (SELECT ?2 UNION ALL SELECT r.was
			FROM members s JOIN renames r ON r.session = s.sessionKey WHERE s.name = ?2 COLLATE NOCASE AND s.removedAt IS NULL)
		AND m.fromSession = coalesce((SELECT sessionKey FROM members WHERE name = ?2 COLLATE NOCASE AND removedAt IS NULL), '')`
	sqlMessagePut = `INSERT INTO messages(id, run, kind, fromAgent, fromSession, toAgent, parent, hop, idemKey, requestId, text, summary, payload, at)
		VALUES (?, ?, ?, ?, coalesce((SELECT sessionKey FROM members WHERE name = ?4 COLLATE NOCASE AND removedAt IS NULL), ''),
			?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq`
)

// MessageFilter narrows Messages. The zero value selects every message, in
// order.
type MessageFilter struct {
	Run       int64
	Kind      team.Kind
	From      string // agent name
	Recipient string // agent name of a recipient, also of a broadcast
	With      string // agent name of the sender or a recipient
	Parent    string
	RequestID string
	After     int64 // sequence number
	Newest    bool  // newest first
	Limit     int
}

// Message returns one message, or CodeNotFound (message_not_found).
func (l *Ledger) Message(ctx context.Context, id string) (Message, error) {
	ms, err := read(ctx, l.db, "read message "+id, scanMessage, sqlMessageGet, id)
	if err == nil && len(ms) == 0 {
		err = errNoMessage(id)
	}
	if err != nil {
		return Message{}, err
	}
	return ms[0], nil
}

// Messages returns the messages that match the filter, in the order of posting.
func (l *Ledger) Messages(ctx context.Context, f MessageFilter) ([]Message, error) {
	q, args := sqlMessages, []any(nil)
	and := func(cond string, vals ...any) { q, args = q+" AND "+cond, append(args, vals...) }
	// Deliveries carry the recipient's current name, messages the sender's name of their time.
	// A filter may have either.
	const got = `EXISTS (SELECT 1 FROM deliveries d WHERE d.message = m.id AND (d.recipient = ?
		OR d.session IN (SELECT session FROM renames WHERE was = ? AND state <> 'begun')))`
	const sent = `(m.fromAgent = ? COLLATE NOCASE OR m.fromSession IN (SELECT r.session FROM renames r
		JOIN members s ON s.sessionKey = r.session WHERE s.name = ? COLLATE NOCASE AND r.state <> 'begun'))`
	if f.Run != 0 {
		and("m.run = ?", f.Run)
	}
	if f.Kind != "" {
		and("m.kind = ?", string(f.Kind))
	}
	if f.From != "" {
		and(sent, f.From, f.From)
	}
	if f.Recipient != "" {
		and(got, f.Recipient, f.Recipient)
	}
	if f.With != "" {
		and("("+sent+" OR "+got+")", f.With, f.With, f.With, f.With)
	}
	if f.Parent != "" {
		and("m.parent = ?", f.Parent)
	}
	if f.RequestID != "" {
		and("m.requestId = ?", f.RequestID)
	}
	if f.After != 0 {
		and("m.seq > ?", f.After)
	}
	order := " ORDER BY m.seq"
	if f.Newest {
		order += " DESC"
	}
	q, args = limited(q+order, args, f.Limit)
	return read(ctx, l.db, "read messages", scanMessage, q, args...)
}

// Audit writes the message log as JSON lines {timestamp, from, to, type, size}:
// timestamp in Unix milliseconds, to empty for a broadcast, size in bytes.
func (l *Ledger) Audit(ctx context.Context, w io.Writer) error {
	enc := json.NewEncoder(w)
	for after := int64(0); ; {
		ms, err := l.Messages(ctx, MessageFilter{After: after, Limit: 1000})
		if err != nil || len(ms) == 0 {
			return err
		}
		for _, m := range ms {
			if err := enc.Encode(auditLine{m.At, m.From, m.To, m.Kind, len(m.Text) + len(m.Payload)}); err != nil {
				return fmt.Errorf("write the audit log: %w", err)
			}
			after = m.Seq
		}
	}
}

type auditLine struct {
	Timestamp int64     `json:"timestamp"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	Type      team.Kind `json:"type"`
	Size      int       `json:"size"`
}

func scanMessage(r *sql.Rows) (Message, error) { return scanMessageAnd(r) }

// scanMessageAnd also scans the columns that follow.
func scanMessageAnd(r *sql.Rows, more ...any) (Message, error) {
	var m Message
	var payload sql.NullString
	err := r.Scan(append([]any{&m.ID, &m.Seq, &m.Run, &m.Kind, &m.From, &m.To, &m.Parent, &m.Hop,
		&m.IdemKey, &m.RequestID, &m.Text, &m.Summary, &payload, &m.At}, more...)...)
	m.Payload = rawJSON(payload)
	return m, err
}

func errNoMessage(id string) error {
	return team.Errorf(team.CodeNotFound, "no message %q", id).WithReason(team.ReasonMessageNotFound).WithHint("teamctl message ls --newest")
}

// conversation reports whether a kind counts against the message limit of a
// run. Protocol messages do not count: a team that has reached the limit must
// still be able to stop.
func conversation(k team.Kind) bool {
	switch k {
	case team.KindMessage, team.KindBroadcast, team.KindTaskRequest, team.KindTaskResponse, team.KindInfo, team.KindError:
		return true
	default:
		return false
	}
}

func shutdownKind(k team.Kind) bool { return strings.HasPrefix(string(k), "shutdown_") }
