package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/teamctl/teamctl/team"
)

const deliveryCols = `d.message, d.seq, d.recipient, d.session, d.state, d.reason, d.evidence, d.at`

const (
	sqlDeliveries  = `SELECT ` + deliveryCols + ` FROM deliveries d WHERE d.message = ? ORDER BY d.recipient`
	sqlDeliveryOne = `SELECT ` + deliveryCols + ` FROM deliveries d WHERE d.message = ? AND d.recipient = ?`
	// The delivery to a renamed recipient, by its former name.
	sqlDeliveryWas = `SELECT ` + deliveryCols + ` FROM deliveries d WHERE d.message = ?1
		AND d.session IN (SELECT session FROM renames WHERE was = ?2 AND state <> 'begun')`
	sqlDeliverySet  = `UPDATE deliveries SET state = ?, reason = ?, evidence = ?, at = ? WHERE message = ? AND recipient = ?`
	sqlDeliveryOpen = `SELECT message FROM deliveries INDEXED BY idx_deliveries_open
		WHERE session = ? AND state IN ('posted', 'mailed', 'held', 'injected', 'unknown') ORDER BY seq`
	sqlShutdownOpen = `SELECT d.message FROM deliveries d INDEXED BY idx_deliveries_open
		JOIN messages m ON m.id = d.message WHERE d.session = ? AND d.state IN ('posted', 'mailed', 'held', 'injected', 'unknown')
		AND m.kind = 'shutdown_request' ORDER BY d.seq`
	sqlOutbox = `SELECT ` + deliveryCols + `, ` + messageCols + ` FROM deliveries d INDEXED BY idx_deliveries_posted
		JOIN messages m ON m.id = d.message WHERE d.state = 'posted' ORDER BY d.rank, d.seq, d.recipient`
	sqlWaiting = `SELECT ` + deliveryCols + `, ` + messageCols + ` FROM deliveries d INDEXED BY idx_deliveries_open
		JOIN messages m ON m.id = d.message WHERE d.session = ? AND d.state IN ('posted', 'mailed', 'held', 'injected', 'unknown')
		ORDER BY d.rank, d.seq`
	sqlWaitingCounts = `SELECT session, count(*) FROM deliveries INDEXED BY idx_deliveries_open
		WHERE state IN ('posted', 'mailed', 'held', 'injected', 'unknown') GROUP BY session`
	// What was sent again is the new message's concern.
	sqlDoubtful = `SELECT ` + deliveryCols + `, ` + messageCols + ` FROM deliveries d INDEXED BY idx_deliveries_open
		JOIN messages m ON m.id = d.message WHERE d.state IN ('posted', 'mailed', 'held', 'injected', 'unknown') AND d.state IN ('held', 'unknown')
		AND NOT EXISTS (SELECT 1 FROM messages a WHERE a.run >= m.run AND a.idemKey = 'again:' || m.id || ':' || d.recipient) ORDER BY d.seq, d.recipient`
	// Protocol messages are dropped when they are of no use any more. A limit bounds the work.
	sqlDropped = `SELECT ` + deliveryCols + `, ` + messageCols + ` FROM
		(SELECT * FROM deliveries INDEXED BY idx_deliveries_dropped WHERE state = 'dropped' AND recipient <> 'team-lead' ORDER BY seq DESC LIMIT 200) d
		JOIN messages m ON m.id = d.message WHERE m.kind = 'message' AND m.run IN (SELECT id FROM runs WHERE endedAt IS NULL)
		AND 'again:' || m.id || ':' || d.recipient NOT IN (SELECT idemKey FROM messages INDEXED BY idx_messages_idem
			WHERE run IN (SELECT id FROM runs WHERE endedAt IS NULL) AND idemKey IS NOT NULL AND substr(idemKey, 1, 6) = 'again:') ORDER BY d.seq, d.recipient`
	// The limit suffices: an unread message of a member is among its newest,
	// and a session may have had any number of messages.
	sqlNewestMailed = `SELECT message FROM (SELECT message, state, seq FROM deliveries INDEXED BY idx_deliveries_session
		WHERE session = ? ORDER BY seq DESC LIMIT 64) WHERE state = 'mailed' ORDER BY seq DESC LIMIT 1`
	sqlReceived = `SELECT ` + messageCols + `, d.message IS NOT NULL, coalesce(d.state, '') FROM json_each(?1) j JOIN messages m ON m.id = j.value
		LEFT JOIN deliveries d ON d.message = m.id AND d.recipient = ?2`
	sqlMailbox = `SELECT ` + deliveryCols + `, ` + messageCols + ` FROM deliveries d INDEXED BY idx_deliveries_session
		JOIN messages m ON m.id = d.message WHERE d.session = ? AND d.seq > ? ORDER BY d.seq`
)

// deliveryOrder ranks the states. Held is a stop: it is left for any state that
// the message had not reached before.
var deliveryOrder = map[team.DeliveryState]int{
	team.Posted: 0, team.Held: 0, team.Mailed: 1, team.Injected: 2, team.Unknown: 2, team.Accepted: 3, team.Read: 4, team.Answered: 5,
}

// Outgoing is a delivery with its message.
type Outgoing struct {
	Message  Message  `json:"message"`
	Delivery Delivery `json:"delivery"`
}

// DeliveryMark changes the state of one delivery. IfStates, if set, lists the
// only states that it may leave.
type DeliveryMark struct {
	MessageID string               `json:"messageId"`
	Recipient string               `json:"recipient"` // agent name
	State     team.DeliveryState   `json:"state"`
	Reason    string               `json:"reason,omitempty"`   // required for held, unknown and dropped
	Evidence  string               `json:"evidence,omitempty"` // required for accepted and later
	IfStates  []team.DeliveryState `json:"ifStates,omitempty"`
	IfKnown   bool                 `json:"ifKnown,omitempty"` // skip an unknown delivery
}

// Undelivered returns at most limit (0: all) deliveries in state posted, in the
// order of delivery: shutdown, then the lead's, then the peers', each in the
// order of posting.
func (l *Ledger) Undelivered(ctx context.Context, limit int) ([]Outgoing, error) {
	q, args := limited(sqlOutbox, nil, limit)
	return read(ctx, l.db, "read the outbox", scanOutgoing, q, args...)
}

// Mailbox returns everything sent to a session after a sequence number, in the
// order of posting; a lost mailbox is rebuilt from it.
func (l *Ledger) Mailbox(ctx context.Context, session string, after int64) ([]Outgoing, error) {
	return read(ctx, l.db, "read the mail of "+session, scanOutgoing, sqlMailbox, session, after)
}

// Waiting returns what was sent to a session and is not known to have reached
// its agent, in the order of delivery.
func (l *Ledger) Waiting(ctx context.Context, session string) ([]Outgoing, error) {
	return read(ctx, l.db, "read what waits for "+session, scanOutgoing, sqlWaiting, session)
}

// NewestMailed returns the id of the newest message that is in a session's
// mailbox and is not known to have reached its agent, if it is among the last
// 64 sent to it; "" for none.
func (l *Ledger) NewestMailed(ctx context.Context, session string) (string, error) {
	ids, err := read(ctx, l.db, "read the newest mail of "+session, func(r *sql.Rows) (id string, err error) {
		return id, r.Scan(&id)
	}, sqlNewestMailed, session)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return ids[0], nil
}

// Deliveries returns the deliveries of one message, by recipient.
func (l *Ledger) Deliveries(ctx context.Context, messageID string) ([]Delivery, error) {
	return read(ctx, l.db, "read deliveries of "+messageID, scanDelivery, sqlDeliveries, messageID)
}

// Delivery returns one delivery of a message; CodeNotFound (message_not_found)
// if the message was not sent to this recipient. A recipient that was renamed
// since is found by its former name too: the answer has the new one.
func (l *Ledger) Delivery(ctx context.Context, messageID, recipient string) (Delivery, error) {
	ds, err := read(ctx, l.db, "read delivery of "+messageID, scanDelivery, sqlDeliveryOne, messageID, recipient)
	if err == nil && len(ds) == 0 {
		ds, err = read(ctx, l.db, "read delivery of "+messageID, scanDelivery, sqlDeliveryWas, messageID, recipient)
	}
	if err == nil && len(ds) == 0 {
		err = team.Errorf(team.CodeNotFound, "message %s was not sent to %q", messageID, recipient).WithReason(team.ReasonMessageNotFound)
	}
	if err != nil {
		return Delivery{}, err
	}
	return ds[0], nil
}

// Received is the ledger's record of a message found in a mailbox.
type Received struct {
	Message Message
	Sent    bool               // to the owner of the mailbox
	State   team.DeliveryState // of that delivery
}

// Received returns the ledger's records of messages, by id, and whether they
// were sent to recipient. Unknown ids are missing from the result.
func (l *Ledger) Received(ctx context.Context, recipient string, ids []string) (map[string]Received, error) {
	out := make(map[string]Received, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	rows, err := read(ctx, l.db, "read messages of a mailbox", func(r *sql.Rows) (g Received, err error) {
		g.Message, err = scanMessageAnd(r, &g.Sent, &g.State)
		return g, err
	}, sqlReceived, string(list), recipient)
	for _, g := range rows {
		out[g.Message.ID] = g
	}
	return out, err
}

// Mark moves one delivery forward and reports whether it moved: a late mark
// (mailed after the agent has read it) changes nothing and is not an error.
// CodeNotFound (message_not_found) for an unknown delivery, CodeInvalid for a
// state without its required reason or evidence.
func (l *Ledger) Mark(ctx context.Context, m DeliveryMark) (bool, error) {
	n, err := l.MarkMany(ctx, []DeliveryMark{m})
	return n > 0, err
}

// MarkMany is Mark for several deliveries in one transaction, all or none; it
// returns how many moved.
func (l *Ledger) MarkMany(ctx context.Context, marks []DeliveryMark) (int, error) {
	if len(marks) == 0 {
		return 0, nil
	}
	return write[int](ctx, l, opDeliveryMark, marks)
}

func markDeliveries(t *tx, marks []DeliveryMark) (int, error) {
	moved := 0
	for _, m := range marks {
		did, err := t.mark(m)
		if err != nil {
			return 0, err
		}
		if did {
			moved++
		}
	}
	return moved, nil
}

func (t *tx) mark(m DeliveryMark) (bool, error) {
	if err := m.check(); err != nil {
		return false, err
	}
	d, found, err := t.delivery(m.MessageID, m.Recipient)
	if err != nil {
		return false, err
	}
	if !found && m.IfKnown {
		return false, nil
	}
	if !found {
		return false, team.Errorf(team.CodeNotFound, "message %s was not sent to %q", m.MessageID, m.Recipient).
			WithReason(team.ReasonMessageNotFound)
	}
	if len(m.IfStates) > 0 && !slices.Contains(m.IfStates, d.State) || !canDeliver(d.State, m.State) {
		return false, nil
	}
	if _, err := t.exec(sqlDeliverySet, m.State, m.Reason, m.Evidence, t.now, m.MessageID, d.Recipient); err != nil {
		return false, err
	}
	if t.who != d.Recipient { // otherwise it knows
		t.concern(d.Session)
	}
	return true, t.event(Event{Who: d.Recipient, What: team.MessageEvents + string(m.State), ID: d.MessageID,
		Before: string(d.State), After: string(m.State), Data: json.RawMessage(mustJSON(markData{m.Reason, m.Evidence}))})
}

// delivery is Delivery inside a transaction.
func (t *tx) delivery(message, recipient string) (d Delivery, found bool, err error) {
	for _, q := range []string{sqlDeliveryOne, sqlDeliveryWas} {
		found, err = t.one(q, func(r *sql.Rows) (err error) {
			d, err = scanDelivery(r)
			return err
		}, message, recipient)
		if found || err != nil {
			break
		}
	}
	return d, found, err
}

type markData struct {
	Reason   string `json:"reason,omitempty"`
	Evidence string `json:"evidence,omitempty"`
}

func (m DeliveryMark) check() error {
	switch m.State {
	case team.Mailed, team.Injected:
	case team.Held, team.Dropped, team.Unknown:
		if m.Reason == "" {
			return team.Errorf(team.CodeInvalid, "state %s requires a reason", m.State)
		}
	case team.Accepted, team.Read, team.Answered:
		if m.Evidence == "" {
			return team.Errorf(team.CodeInvalid, "state %s requires evidence", m.State)
		}
	case team.Posted:
		return team.Errorf(team.CodeInvalid, "a delivery cannot return to state posted")
	default:
		return team.Errorf(team.CodeInvalid, "unknown delivery state %q", m.State)
	}
	return nil
}

// canDeliver reports whether a delivery may change state. A message that its
// agent has received can no longer be held or dropped.
func canDeliver(from, to team.DeliveryState) bool {
	switch {
	case from == to || from == team.Dropped || from == team.Answered:
		return false
	case to == team.Held || to == team.Dropped:
		return deliveryOrder[from] < deliveryOrder[team.Accepted]
	case to == team.Unknown: // nothing became of what was handed over
		return from == team.Injected
	case from == team.Unknown && to == team.Injected: // handed over again
		return true
	default:
		return deliveryOrder[to] > deliveryOrder[from]
	}
}

// dropMail drops the deliveries that a leaving member has not received: the
// next member of that name must not get them. If the member's process has
// ended, the reason includes its state, in the documented wording.
func (t *tx) dropMail(m Member) error {
	why := m.Name + " has left the team"
	if m.Observed.Terminal() {
		why = fmt.Sprintf("Dropping message for task %s: status is %q: %s", m.AgentID, m.Observed, why)
	}
	return t.drop(m, sqlDeliveryOpen, why)
}

// dropShutdowns drops the shutdown requests that a generation has not answered:
// the member's next generation, possibly started by a restart that sent the
// request, must not obey them.
func (t *tx) dropShutdowns(m Member) error {
	return t.drop(m, sqlShutdownOpen, "it was for the generation before")
}

// drop drops the deliveries to m whose messages query returns for its session.
func (t *tx) drop(m Member, query, reason string) error {
	ids, err := column[string](t, query, m.SessionKey)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := t.mark(DeliveryMark{MessageID: id, Recipient: m.Name, State: team.Dropped, Reason: reason}); err != nil {
			return err
		}
	}
	return nil
}

// answered marks the message that a reply answers, if the sender of the reply
// received it.
func (t *tx) answered(parent, by, reply string) error {
	if _, there, err := t.delivery(parent, by); err != nil || !there {
		return err
	}
	_, err := t.mark(DeliveryMark{MessageID: parent, Recipient: by, State: team.Answered, Evidence: "reply " + reply})
	return err
}

func (t *tx) deliveries(message string) ([]Delivery, error) {
	out := []Delivery{}
	err := t.each(sqlDeliveries, func(r *sql.Rows) error {
		d, err := scanDelivery(r)
		out = append(out, d)
		return err
	}, message)
	return out, err
}

func scanDelivery(r *sql.Rows) (Delivery, error) {
	var d Delivery
	err := r.Scan(&d.MessageID, &d.Seq, &d.Recipient, &d.Session, &d.State, &d.Reason, &d.Evidence, &d.At)
	return d, err
}

func scanOutgoing(r *sql.Rows) (Outgoing, error) { return scanOutgoingAnd(r) }

// scanOutgoingAnd also scans the columns that follow.
func scanOutgoingAnd(r *sql.Rows, more ...any) (Outgoing, error) {
	var o Outgoing
	d, m := &o.Delivery, &o.Message
	var payload sql.NullString
	err := r.Scan(append([]any{&d.MessageID, &d.Seq, &d.Recipient, &d.Session, &d.State, &d.Reason, &d.Evidence, &d.At,
		&m.ID, &m.Seq, &m.Run, &m.Kind, &m.From, &m.To, &m.Parent, &m.Hop,
		&m.IdemKey, &m.RequestID, &m.Text, &m.Summary, &payload, &m.At}, more...)...)
	m.Payload = rawJSON(payload)
	return o, err
}

// Doubtful returns the deliveries in state held or unknown, in the order of posting, without those of
// messages that were sent again: with the idempotency key "again:MESSAGE:RECIPIENT".
func (l *Ledger) Doubtful(ctx context.Context) ([]Outgoing, error) {
	return read(ctx, l.db, "read doubtful deliveries", scanOutgoing, sqlDoubtful)
}

// Dropped returns the deliveries of messages of the current run that a member was to read and that were
// dropped, in the order of posting, without those of messages that were sent again: see Doubtful. Protocol
// messages and what was for the lead are left out.
func (l *Ledger) Dropped(ctx context.Context) ([]Outgoing, error) {
	return read(ctx, l.db, "read dropped deliveries", scanOutgoing, sqlDropped)
}

// WaitingCounts returns the number of messages that Waiting would return, by
// session; sessions without any are missing.
func (l *Ledger) WaitingCounts(ctx context.Context) (map[string]int, error) {
	type count struct {
		session string
		n       int
	}
	list, err := read(ctx, l.db, "count what waits", func(r *sql.Rows) (c count, err error) {
		return c, r.Scan(&c.session, &c.n)
	}, sqlWaitingCounts)
	counts := make(map[string]int, len(list))
	for _, c := range list {
		counts[c.session] = c.n
	}
	return counts, err
}
