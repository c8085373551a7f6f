package ledger

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

const callCols = `id, session, job, asked, call_id, name, input, read_only, state, coalesce(entry, 0), begun_at, ended_at`

const (
	sqlCallPut = `INSERT INTO tool_calls(session, job, asked, call_id, name, input, read_only) VALUES (?, ?, ?, ?, ?, ?, ?)`
	sqlCallGet = `SELECT ` + callCols + ` FROM tool_calls WHERE session = ? AND call_id = ? AND state IN ('asked', 'begun') ORDER BY id DESC LIMIT 1`
	// The call of an answer by its id; a call that has its result is found, too.
	sqlCallLatest = `SELECT ` + callCols + ` FROM tool_calls WHERE session = ? AND call_id = ? ORDER BY id DESC LIMIT 1`
	sqlCallsOpen  = `SELECT ` + callCols + ` FROM tool_calls WHERE session = ? AND state IN ('asked', 'begun') ORDER BY id`
	// The newest that did not fail, from the end of the session's calls.
	sqlCallNewest = `SELECT input, coalesce((SELECT i.value FROM session_entries a, json_each(a.meta_json, '$.inputs') i
		WHERE a.session = ?1 AND a.seq = tool_calls.asked AND i.key = tool_calls.call_id), '') FROM tool_calls WHERE session = ?1 AND name = ?2 AND state = 'ended' AND begun_at > 0 AND EXISTS (SELECT 1 FROM session_entries e
		WHERE e.session = ?1 AND e.seq = tool_calls.entry AND coalesce(json_extract(e.meta_json, '$.failed'), 0) = 0) ORDER BY asked DESC, id DESC LIMIT 1`
	sqlCallsJob  = `SELECT ` + callCols + ` FROM tool_calls WHERE job = ? ORDER BY id`
	sqlCallBegin = `UPDATE tool_calls SET state = 'begun', begun_at = ?, job = ? WHERE id = ?`
	sqlCallEnd   = `UPDATE tool_calls SET state = ?, entry = ?, ended_at = ? WHERE id = ?`
)

// TurnAnswer is a complete answer of the model to one request of a turn.
type TurnAnswer struct {
	Ref   TurnRef         `json:"ref"`
	Entry NewEntry        `json:"entry"` // an assistant entry
	Calls []NewCall       `json:"calls,omitempty"`
	Begin string          `json:"begin,omitempty"` // id of the call that begins at once, as by BeginCall
	Usage json.RawMessage `json:"usage,omitempty"` // of the turn so far
}

// TurnResults are ends of calls, and what else becomes part of the transcript with them.
type TurnResults struct {
	Ref     TurnRef      `json:"ref"`
	Results []CallResult `json:"results,omitempty"`
	Entries []NewEntry   `json:"entries,omitempty"` // events and compactions
}

// CallResult is the result of one call.
type CallResult struct {
	CallID string   `json:"callId"`
	Entry  NewEntry `json:"entry"` // of kind tool_result
	// Collects are the keys of announces whose results it has: they begin no turn, and are
	// shown to none.
	Collects []string `json:"collects,omitempty"`
}

// Answered records a complete answer of the model together with the calls that it asks
// for. Errors of every fenced write: CodeNotFound turn_not_found, CodeConflict
// stale_turn; an answer while calls are open is CodeConflict open_calls.
func (l *Ledger) Answered(ctx context.Context, a TurnAnswer) (Entry, error) {
	return write[Entry](ctx, l, opTurnAnswer, a)
}

// BeginCall records that a call which may change something begins. It is not begun
// twice: begun is false if it was begun, or has ended, before.
func (l *Ledger) BeginCall(ctx context.Context, ref TurnRef, callID string) (begun bool, err error) {
	return write[bool](ctx, l, opCallBegin, beginArgs{ref, callID})
}

// EndCalls records the results of calls and appends further entries. A call that has a
// result keeps it.
func (l *Ledger) EndCalls(ctx context.Context, r TurnResults) ([]Entry, error) {
	return write[[]Entry](ctx, l, opCallsEnd, r)
}

// OpenCalls returns the calls of a session that have no result yet, in the order in
// which they were asked for.
func (l *Ledger) OpenCalls(ctx context.Context, session string) ([]ToolCall, error) {
	return read(ctx, l.db, "read open calls of "+session, scanCall, sqlCallsOpen, session)
}

// ToolCalls returns the calls of a turn in order.
func (l *Ledger) ToolCalls(ctx context.Context, job int64) ([]ToolCall, error) {
	return read(ctx, l.db, "read calls of turn "+itoa(job), scanCall, sqlCallsJob, job)
}

// NewestInput returns what the newest call of a tool in a session was given, of those that
// began and did not fail; ok is false without one.
func (l *Ledger) NewestInput(ctx context.Context, session, tool string) (input CallInput, ok bool, err error) {
	list, err := read(ctx, l.db, "read the newest call of "+tool, scanInput, sqlCallNewest, session, tool)
	if err != nil || len(list) == 0 {
		return input, false, err
	}
	return list[0], true, nil
}

// CallInput is what a call was given. A long one is in a file of the member's outputs, and File is
// its name.
type CallInput struct {
	JSON json.RawMessage
	File string
}

func scanInput(r *sql.Rows) (in CallInput, err error) {
	var text string
	err = r.Scan(&text, &in.File)
	in.JSON = json.RawMessage(text)
	return in, err
}

type beginArgs struct {
	Ref    TurnRef `json:"ref"`
	CallID string  `json:"callId"`
}

func answerTurn(t *tx, a TurnAnswer) (Entry, error) {
	j, err := t.fencedTurn(a.Ref)
	if err != nil {
		return Entry{}, err
	}
	if a.Entry.Kind != EntryAssistant {
		return Entry{}, team.Errorf(team.CodeInvalid, "an answer is an %s entry, not %q", EntryAssistant, a.Entry.Kind)
	}
	open, err := t.calls(sqlCallsOpen, j.Session)
	if err != nil {
		return Entry{}, err
	}
	if len(open) > 0 {
		return Entry{}, team.Errorf(team.CodeConflict, "session %s: call %s has no result yet", j.Session, open[0].CallID).WithReason(team.ReasonOpenCalls)
	}
	e, fresh, err := t.entry(j.Session, a.Entry, j.ID)
	if err != nil || !fresh {
		return e, err
	}
	for _, c := range a.Calls {
		if c.CallID == "" || c.Name == "" {
			return e, team.Errorf(team.CodeInvalid, "a tool call needs an id and a name")
		}
		if _, err := t.exec(sqlCallPut, j.Session, j.ID, e.Seq, c.CallID, c.Name, c.Input, c.ReadOnly); err != nil {
			return e, err
		}
	}
	if a.Begin != "" {
		if _, err := t.beginCall(j, a.Begin); err != nil {
			return e, err
		}
	}
	if len(a.Usage) > 0 {
		if _, err := object("usage", a.Usage); err != nil {
			return e, err
		}
		if _, err := t.exec(sqlJobNote, nil, jsonOrNull(a.Usage), j.ID); err != nil {
			return e, err
		}
	}
	return e, nil
}

func beginCall(t *tx, a beginArgs) (bool, error) {
	j, err := t.fencedTurn(a.Ref)
	if err != nil {
		return false, err
	}
	return t.beginCall(j, a.CallID)
}

func (t *tx) beginCall(j TurnJob, id string) (bool, error) {
	c, found, err := t.call(sqlCallLatest, j.Session, id)
	if err == nil && !found {
		err = team.Errorf(team.CodeNotFound, "session %s: no call %q", j.Session, id)
	}
	if err != nil || c.State != CallAsked {
		return false, err
	}
	_, err = t.exec(sqlCallBegin, t.now, j.ID, c.ID)
	return err == nil, err
}

func endCalls(t *tx, r TurnResults) ([]Entry, error) {
	j, err := t.fencedTurn(r.Ref)
	if err != nil {
		return nil, err
	}
	out, err := t.endCalls(j, r.Results)
	if err != nil {
		return nil, err
	}
	more, err := t.entries(j.Session, r.Entries, j.ID)
	return append(out, more...), err
}

func (t *tx) endCalls(j TurnJob, list []CallResult) (out []Entry, err error) {
	for _, r := range list {
		c, found, err := t.call(sqlCallGet, j.Session, r.CallID)
		if err != nil {
			return nil, err
		}
		if !found {
			continue // it has one
		}
		e, err := t.endCall(j, c, CallEnded, r.Entry)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
		if err := t.collect(j, r.Collects); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// endCall gives an open call its result.
func (t *tx) endCall(j TurnJob, c ToolCall, state CallState, n NewEntry) (Entry, error) {
	n.Kind, n.Source = EntryToolResult, "call:"+itoa(c.ID)
	meta, err := object("the meta of a result", n.Meta)
	if err != nil {
		return Entry{}, err
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	meta["call"], meta["name"] = json.RawMessage(mustJSON(c.CallID)), json.RawMessage(mustJSON(c.Name))
	if state == CallLost {
		meta["lost"] = json.RawMessage("true")
	}
	n.Meta = json.RawMessage(mustJSON(meta))
	e, _, err := t.entry(j.Session, n, j.ID)
	if err != nil {
		return e, err
	}
	_, err = t.exec(sqlCallEnd, state, e.Seq, t.now, c.ID)
	return e, err
}

func (t *tx) call(q string, args ...any) (c ToolCall, found bool, err error) {
	found, err = t.one(q, func(r *sql.Rows) (err error) {
		c, err = scanCall(r)
		return err
	}, args...)
	return c, found, err
}

func (t *tx) calls(q string, args ...any) (out []ToolCall, err error) {
	err = t.each(q, func(r *sql.Rows) error {
		c, err := scanCall(r)
		out = append(out, c)
		return err
	}, args...)
	return out, err
}

func scanCall(r *sql.Rows) (ToolCall, error) {
	var c ToolCall
	err := r.Scan(&c.ID, &c.Session, &c.Job, &c.Asked, &c.CallID, &c.Name, &c.Input, &c.ReadOnly, &c.State, &c.Entry, &c.BegunAt, &c.EndedAt)
	return c, err
}
