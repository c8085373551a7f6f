package ledger

import (
	"context"
	"database/sql"

	"github.com/teamctl/teamctl/team"
)

// MaxThreadDepth limits the depth to which a thread is read.
const MaxThreadDepth = 50

const (
	// The root is searched as far up as its thread is shown down, so that the
	// requested message is always included.
	sqlThreadRoot = `WITH RECURSIVE up(id, parent, n) AS (
			SELECT id, parent, 0 FROM messages WHERE id = ?1
			UNION ALL SELECT m.id, m.parent, u.n + 1 FROM messages m JOIN up u ON m.id = u.parent WHERE u.n < ?2)
		SELECT id FROM up ORDER BY n DESC LIMIT 1`
	sqlThreadDown = `, thread(id, root, depth, path) AS (
			SELECT id, id, 0, printf('%016d', seq) FROM messages WHERE id IN (SELECT id FROM roots)
			UNION ALL
			SELECT m.id, t.root, t.depth + 1, t.path || printf('/%016d', m.seq)
			FROM messages m JOIN thread t ON m.parent = t.id WHERE t.depth < ?2)
		SELECT ` + messageCols + `, t.root, t.depth FROM thread t JOIN messages m ON m.id = t.id ORDER BY t.path`
	sqlThreadOne = `WITH RECURSIVE roots(id) AS (SELECT ?1)` + sqlThreadDown
	sqlThreadRun = `WITH RECURSIVE roots(id) AS (SELECT id FROM messages WHERE parent IS NULL AND run = ?1)` + sqlThreadDown
	sqlThreadCut = `SELECT count(*) FROM messages WHERE parent IN (SELECT value FROM json_each(?))`
	sqlMessageBy = `SELECT ` + messageCols + ` FROM messages m WHERE m.id >= ? AND m.id < ? ORDER BY m.id LIMIT 2`
)

// ThreadLine is a message with its position in its thread.
type ThreadLine struct {
	Message
	Root  string `json:"root"`
	Depth int    `json:"depth"` // 0 for the root
}

// Thread is one or several conversations, with each message below the one that
// it answers.
type Thread struct {
	Lines []ThreadLine `json:"messages"`
	Cut   int          `json:"cut,omitempty"` // messages just below the depth limit, which are omitted
}

// Thread returns the conversation that contains a message, or with an empty id
// all those of the current run, in the order in which they began.
func (l *Ledger) Thread(ctx context.Context, id string) (Thread, error) {
	q, arg := sqlThreadOne, any(nil)
	if id == "" {
		run, err := l.CurrentRun(ctx)
		if err != nil {
			return Thread{}, err
		}
		q, arg = sqlThreadRun, run.ID
	} else {
		roots, err := read(ctx, l.db, "read thread of "+id, scanOne[string], sqlThreadRoot, id, MaxThreadDepth)
		if err == nil && len(roots) == 0 {
			err = errNoMessage(id)
		}
		if err != nil {
			return Thread{}, err
		}
		arg = roots[0]
	}
	lines, err := read(ctx, l.db, "read thread", scanThreadLine, q, arg, MaxThreadDepth)
	if err != nil {
		return Thread{}, err
	}
	th := Thread{Lines: lines}
	var deepest []string
	for _, line := range lines {
		if line.Depth == MaxThreadDepth {
			deepest = append(deepest, line.ID)
		}
	}
	if len(deepest) > 0 {
		n, err := read(ctx, l.db, "read thread", scanOne[int], sqlThreadCut, mustJSON(deepest))
		if err != nil {
			return Thread{}, err
		}
		th.Cut = n[0]
	}
	return th, nil
}

// minPrefix is the minimum length of an abbreviated message id.
const minPrefix = 4

// FindMessage returns the message whose id is or starts with id (at least four
// characters). Errors: CodeNotFound (message_not_found), CodeInvalid
// (message_ambiguous).
func (l *Ledger) FindMessage(ctx context.Context, id string) (Message, error) {
	if len(id) < minPrefix {
		return Message{}, errNoMessage(id)
	}
	ms, err := read(ctx, l.db, "read message "+id, scanMessage, sqlMessageBy, id, id+"\x7f")
	switch {
	case err != nil:
		return Message{}, err
	case len(ms) == 0:
		return Message{}, errNoMessage(id)
	case len(ms) > 1 && ms[0].ID != id:
		return Message{}, team.Errorf(team.CodeInvalid, "several messages start with %q", id).
			WithReason(team.ReasonMessageAmbiguous).WithHint("teamctl message ls")
	}
	return ms[0], nil
}

// Reached reports whether a delivery has reached want or a later state. Held
// and dropped ones have not.
func Reached(have, want team.DeliveryState) bool {
	h, ok := deliveryOrder[have]
	return ok && have != team.Held && h >= deliveryOrder[want]
}

func scanThreadLine(r *sql.Rows) (ThreadLine, error) {
	var x ThreadLine
	m := &x.Message
	var payload sql.NullString
	err := r.Scan(&m.ID, &m.Seq, &m.Run, &m.Kind, &m.From, &m.To, &m.Parent, &m.Hop,
		&m.IdemKey, &m.RequestID, &m.Text, &m.Summary, &payload, &m.At, &x.Root, &x.Depth)
	m.Payload = rawJSON(payload)
	return x, err
}
