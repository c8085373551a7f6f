package ledger

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

// Intent is an approved action that takes longer than the transaction of the
// answer. It is written with the answer and stays open until FinishIntent:
// after a kill in between, the next supervisor continues it.
type Intent struct {
	Approval int64           `json:"approval"`
	What     json.RawMessage `json:"what"`
	Outcome  *Outcome        `json:"outcome,omitempty"` // nil: still to be done
}

// Outcome is the result of an intent.
type Outcome struct {
	Text  string      `json:"text"`
	Error *team.Error `json:"error,omitempty"` // nil on success
}

// FinishIn ends an intent and notifies the requester of the approval, if it is
// still on the roster, in the name of the answerer.
type FinishIn struct {
	Approval int64   `json:"approval"`
	Outcome  Outcome `json:"outcome"`
	Summary  string  `json:"summary,omitempty"`
}

const (
	sqlIntents      = `SELECT approval, what, outcome FROM intents`
	sqlIntentsOpen  = sqlIntents + ` WHERE outcome IS NULL ORDER BY approval`
	sqlIntentGet    = sqlIntents + ` WHERE approval = ?`
	sqlIntentPut    = `INSERT INTO intents(approval, what) VALUES (?, ?)`
	sqlIntentFinish = `UPDATE intents SET outcome = ? WHERE approval = ? AND outcome IS NULL`
)

// Intents returns the open intents, oldest first.
func (l *Ledger) Intents(ctx context.Context) ([]Intent, error) {
	return read(ctx, l.db, "read intents", scanIntent, sqlIntentsOpen)
}

// Intent returns the intent of an approval; CodeNotFound (approval_not_found)
// if the approval has none.
func (l *Ledger) Intent(ctx context.Context, approval int64) (Intent, error) {
	all, err := read(ctx, l.db, "read intent "+itoa(approval), scanIntent, sqlIntentGet, approval)
	if err == nil && len(all) == 0 {
		err = errNoApproval(itoa(approval))
	}
	if err != nil {
		return Intent{}, err
	}
	return all[0], nil
}

// FinishIntent writes the outcome of an intent. If the intent has already ended
// it is unchanged, and the result has no message.
func (l *Ledger) FinishIntent(ctx context.Context, in FinishIn) (Settled, error) {
	return write[Settled](ctx, l, opIntentFinish, finishArgs{in, team.NewUUID()})
}

type finishArgs struct {
	FinishIn
	MessageID string `json:"messageId"`
}

func finishIntent(t *tx, a finishArgs) (out Settled, err error) {
	ap, err := t.approval(a.Approval)
	if err != nil {
		return out, err
	}
	n, err := t.exec(sqlIntentFinish, mustJSON(a.Outcome), a.Approval)
	if err != nil || n == 0 {
		return Settled{Approval: ap}, err
	}
	m, err := t.memberBySession(ap.Session)
	if err != nil && !team.IsCode(err, team.CodeNotFound) {
		return out, err
	}
	if err == nil && m.RemovedAt == 0 {
		out, err = t.approvalMail(NewMessage{
			Kind: team.KindInfo, From: ap.AnsweredBy, To: m.Name, ToSession: m.SessionKey, Text: a.Outcome.Text, Summary: a.Summary,
		}, a.MessageID)
		if err != nil {
			return out, err
		}
	}
	out.Approval = ap
	return out, t.event(Event{What: team.EventIntentEnded, ID: itoa(ap.ID), Data: json.RawMessage(mustJSON(a.Outcome))})
}

func scanIntent(r *sql.Rows) (i Intent, err error) {
	var what string
	var outcome sql.NullString
	if err := r.Scan(&i.Approval, &what, &outcome); err != nil {
		return i, err
	}
	i.What = json.RawMessage(what)
	if outcome.Valid {
		err = json.Unmarshal([]byte(outcome.String), &i.Outcome)
	}
	return i, err
}
