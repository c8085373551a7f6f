package ledger

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

const backlogCols = `id, session, kind, text, meta_json, provenance, coalesce(source, ''), coalesce(message, ''), coalesce(recipient, ''), hop, at`

const (
	sqlBacklog      = `SELECT ` + backlogCols + ` FROM session_backlog WHERE session = ? AND entry IS NULL ORDER BY id`
	sqlBacklogCount = `SELECT count(*) FROM session_backlog WHERE session = ? AND entry IS NULL`
	sqlBacklogPut   = `INSERT INTO session_backlog(session, kind, text, meta_json, provenance, source, message, recipient, hop, at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	sqlBacklogTaken = `UPDATE session_backlog SET entry = ? WHERE session = ? AND entry IS NULL AND id <= ?`
	sqlBacklogOut   = `DELETE FROM session_backlog WHERE session = ? AND source = ? AND entry IS NULL`
	sqlBacklogKnown = `SELECT EXISTS (SELECT 1 FROM session_backlog WHERE session = ? AND source = ? AND kind = 'message')`
	// Whether input waits, not only the rest of a turn.
	sqlBacklogWaits = `SELECT EXISTS (SELECT 1 FROM session_backlog WHERE session = ? AND entry IS NULL AND kind = 'message')`
	// The turn that has an entry: the one that appended it, or the first that began behind it.
	sqlEntryTurn = `SELECT coalesce(e.job, (SELECT j.id FROM turn_jobs j WHERE j.session = e.session AND j.input IS NULL AND j.state <> 'steered'
		AND (j.start_seq >= e.seq OR j.attempt = 0) AND (j.ended_at = 0 OR j.ended_at >= e.at) ORDER BY j.id LIMIT 1), 0)
		FROM session_entries e WHERE e.session = ? AND e.source = ?`
	sqlEntryKnown = `SELECT EXISTS (SELECT 1 FROM session_entries WHERE session = ?1 AND source = ?2)
		OR EXISTS (SELECT 1 FROM session_backlog WHERE session = ?1 AND source = ?2)`
)

// Input is one thing that a session is told: a message, a line of a person, an
// injection. Source makes it single: the session has at most one of a source.
type Input struct {
	NewEntry
	// Message and Recipient name the delivery that is accepted with the entry.
	Message   string `json:"message,omitempty"`
	Recipient string `json:"recipient,omitempty"`
}

// TakeIn gives a session input. Where no turn of it is under way, it is appended to the
// transcript, behind what waits in the backlog, its deliveries are accepted, and a turn is
// queued, unless one waits already. With Turn, the running turn takes it into the
// transcript itself. Otherwise a turn that runs, or that will go on, takes nothing more,
// and the input enters the backlog; so it does while the turn that waits is a steering one,
// which leaves the backlog, and earlier input is there.
type TakeIn struct {
	Session string         `json:"session"`
	Inputs  []Input        `json:"inputs"`
	Cause   team.TurnCause `json:"cause,omitempty"` // default message
	Lane    team.Lane      `json:"lane,omitempty"`  // default that of the session's kind
	Hop     int            `json:"hop,omitempty"`   // injections that led to it
	Turn    *TurnRef       `json:"turn,omitempty"`
	Results []CallResult   `json:"results,omitempty"` // with Turn: of its calls that ended before the input came
	Claim   *ClaimTurnIn   `json:"claim,omitempty"`   // claims the next turn in the same transaction; not for the backlog
}

// TakenIn is what became of input. For one input that is not mail and whose source is known
// it is what became of the first.
type TakenIn struct {
	Entries    []Entry `json:"entries,omitempty"` // new ones; known sources are missing
	Job        int64   `json:"job,omitempty"`     // the turn that sees it; of the backlog the one that runs before
	Backlogged bool    `json:"backlogged,omitempty"`
	// Turn is what Claim has claimed.
	Turn *ClaimedTurn `json:"turn,omitempty"`
}

// TakeIn gives a session input, all of it or none. Errors: CodeNotFound
// session_not_found; CodeConflict session_closed, stale_turn; CodeLimit backlog_full,
// hop_limit.
func (l *Ledger) TakeIn(ctx context.Context, in TakeIn) (TakenIn, error) {
	return write[TakenIn](ctx, l, opSessionTakeIn, in)
}

// KnowsSource reports whether a session has had input of a source, in its transcript or its backlog.
func (l *Ledger) KnowsSource(ctx context.Context, session, source string) (bool, error) {
	list, err := read(ctx, l.db, "look for an input of "+session, scanOne[bool], sqlEntryKnown, session, source)
	return len(list) > 0 && list[0], err
}

// Backlog returns what waits for the session's next turn, in order of arrival.
func (l *Ledger) Backlog(ctx context.Context, session string) ([]BacklogItem, error) {
	return read(ctx, l.db, "read the backlog of "+session, scanBacklog, sqlBacklog, session)
}

func takeIn(t *tx, in TakeIn) (out TakenIn, err error) {
	s, err := t.openSession(in.Session, nil)
	if err != nil {
		return out, err
	}
	t.concern(s.Member)
	if in.Cause == "" {
		in.Cause = team.CauseMessage
	}
	if in.Lane == "" {
		in.Lane = laneOf(s.Key)
	}
	if out, known, err := t.takenBefore(in); known || err != nil {
		return out, err
	}
	if err := t.hop(s, in.Hop); err != nil {
		return out, err
	}
	if in.Turn != nil {
		j, err := t.fencedTurn(*in.Turn)
		if err != nil {
			return out, err
		}
		out.Job = j.ID
		if _, err := t.endCalls(j, in.Results); err != nil {
			return out, err
		}
		out.Entries, err = t.inputs(s.Key, in.Inputs, j.ID)
		return out, err
	}
	running, err := t.jobs(sqlJobRunning, s.Key)
	if err != nil {
		return out, err
	}
	if len(running) == 0 {
		if running, err = t.jobs(sqlJobBegun, s.Key); err != nil {
			return out, err
		}
	}
	if len(running) > 0 {
		out.Job, out.Backlogged = running[0].ID, true
		return out, t.putOff(s.Key, in)
	}
	queued, err := t.jobs(sqlJobQueued, s.Key)
	if err != nil {
		return out, err
	}
	if len(queued) > 0 && queued[0].First { // its turn leaves the backlog, and this is behind what waits there
		waits, _, err := value[bool](t, sqlBacklogWaits, s.Key)
		if err != nil {
			return out, err
		}
		if waits {
			out.Job, out.Backlogged = queued[0].ID, true
			return out, t.putOff(s.Key, in)
		}
	} else if len(queued) > 0 { // its turn would drain what came before behind this
		if _, _, err := t.drain(&queued[0]); err != nil {
			return out, err
		}
	}
	if out.Entries, err = t.inputs(s.Key, in.Inputs, 0); err != nil || len(out.Entries) == 0 {
		return out, err
	}
	if len(queued) > 0 {
		out.Job = queued[0].ID
		_, err = t.exec(sqlJobHop, in.Hop, out.Job)
	} else {
		out.Job, err = t.queue(TurnJob{Session: s.Key, Lane: in.Lane, Cause: in.Cause, Hop: in.Hop}, "")
	}
	if err == nil && in.Claim != nil {
		out.Turn, err = claimTurn(t, *in.Claim)
	}
	return out, err
}

// takenBefore returns what became of the first input of its source, where that is not for the
// turn under way: the entry that it has become, or the item of the backlog.
func (t *tx) takenBefore(in TakeIn) (out TakenIn, known bool, err error) {
	if in.Turn != nil || len(in.Inputs) != 1 || in.Inputs[0].Source == "" || in.Inputs[0].Message != "" {
		return out, false, nil // mail is accepted again, too
	}
	source := in.Inputs[0].Source
	if out.Backlogged, _, err = value[bool](t, sqlBacklogKnown, in.Session, source); err != nil || out.Backlogged {
		return out, out.Backlogged, err
	}
	out.Job, known, err = value[int64](t, sqlEntryTurn, in.Session, source)
	return out, known, err
}

// inputs appends input to the transcript and accepts its deliveries.
func (t *tx) inputs(session string, list []Input, job int64) (out []Entry, err error) {
	for _, in := range list {
		if in.Source != "" { // it is taken now, not later
			if _, err := t.exec(sqlBacklogOut, session, in.Source); err != nil {
				return nil, err
			}
		}
		e, fresh, err := t.entry(session, in.NewEntry, job)
		if err != nil {
			return nil, err
		}
		if fresh {
			out = append(out, e)
		}
		if err := t.acceptAs(e, in.Message, in.Recipient); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// acceptAs accepts the delivery of a message that is in an entry of a transcript.
func (t *tx) acceptAs(e Entry, message, recipient string) error {
	if message == "" {
		return nil
	}
	_, err := t.mark(DeliveryMark{MessageID: message, Recipient: recipient, State: team.Accepted, Evidence: e.evidence()})
	return err
}

// putOff adds input to the backlog. A known source is not added again.
func (t *tx) putOff(session string, in TakeIn) error {
	for _, one := range in.Inputs {
		known := false
		if one.Source != "" {
			var err error
			if known, _, err = value[bool](t, sqlEntryKnown, session, one.Source); err != nil {
				return err
			}
		}
		if known {
			continue
		}
		if err := t.backlog(session, BacklogItem{Kind: BacklogMessage, Text: one.Content, Meta: one.Meta, Provenance: one.Provenance,
			Source: one.Source, Message: one.Message, Recipient: one.Recipient, Hop: in.Hop}); err != nil {
			return err
		}
	}
	return nil
}

// backlog adds an item to a session's backlog.
func (t *tx) backlog(session string, b BacklogItem) error {
	n, _, err := value[int](t, sqlBacklogCount, session)
	if err != nil {
		return err
	}
	if n >= MaxBacklog {
		return team.Errorf(team.CodeLimit, "the backlog of session %s is full (%d items)", session, n).WithReason(team.ReasonBacklogFull)
	}
	if _, err := t.exec(sqlBacklogPut, session, b.Kind, b.Text, jsonOrNull(b.Meta), jsonOrNull(b.Provenance), orNull(b.Source),
		orNull(b.Message), orNull(b.Recipient), b.Hop, t.now); err != nil {
		return err
	}
	return t.event(Event{What: team.EventSessionBacklogged, ID: session, Data: json.RawMessage(mustJSON(map[string]any{"kind": b.Kind, "waiting": n + 1}))})
}

// drain moves the backlog of a session, and the announces that found it full, into one
// entry of the transcript.
func (t *tx) drain(j *TurnJob) (e Entry, some bool, err error) {
	var list []BacklogItem
	if err := t.each(sqlBacklog, func(r *sql.Rows) error {
		b, err := scanBacklog(r)
		list = append(list, b)
		return err
	}, j.Session); err != nil {
		return e, false, err
	}
	late, err := column[string](t, sqlAnnounceWaits, j.Session)
	if err != nil || len(list)+len(late) == 0 {
		return e, false, err
	}
	hop, _, err := value[int](t, sqlAnnounceHop, j.Session)
	if err != nil {
		return e, false, err
	}
	entry := backlogEntry{content: "[Backlog]"}
	var from []json.RawMessage
	for _, b := range list {
		entry.add(b.Text, b.Meta)
		hop = max(hop, b.Hop)
		if len(b.Provenance) > 0 {
			from = append(from, b.Provenance)
		}
	}
	for _, text := range late {
		entry.add(text, nil)
	}
	n := NewEntry{Kind: EntryUser, Content: entry.content, Meta: json.RawMessage(mustJSON(entry.meta))}
	if len(from) > 0 {
		n.Provenance = json.RawMessage(mustJSON(map[string]any{"backlog": from}))
	}
	if e, _, err = t.entry(j.Session, n, j.ID); err != nil {
		return e, false, err
	}
	for _, b := range list {
		if err := t.acceptAs(e, b.Message, b.Recipient); err != nil {
			return e, false, err
		}
	}
	if len(list) > 0 {
		if _, err := t.exec(sqlBacklogTaken, e.Seq, j.Session, list[len(list)-1].ID); err != nil {
			return e, false, err
		}
	}
	if _, err := t.exec(sqlAnnounceTaken, j.Session); err != nil {
		return e, false, err
	}
	if hop > j.Hop {
		j.Hop = hop
		if _, err := t.exec(sqlJobHop, hop, j.ID); err != nil {
			return e, false, err
		}
	}
	return e, true, t.event(Event{What: team.EventSessionDrained, ID: j.Session, Data: json.RawMessage(mustJSON(map[string]any{"turn": j.ID, "items": len(list) + len(late), "entry": e.Seq}))})
}

// hop refuses what too many injections in a row have led to.
func (t *tx) hop(s Session, hop int) error {
	if hop == 0 {
		return nil
	}
	most, err := t.number(SettingMaxHops, defaultMaxHops, 100)
	if err != nil || hop <= most {
		return err
	}
	return team.Errorf(team.CodeLimit, "session %s: %d injections in a row, at most %d are passed on", s.Key, hop, most).WithReason(team.ReasonHopLimit)
}

func laneOf(session string) team.Lane {
	k, err := team.ParseSessionKey(session)
	if err != nil {
		return team.LaneMain
	}
	return team.LaneOf(k.Kind)
}

func scanBacklog(r *sql.Rows) (BacklogItem, error) {
	var b BacklogItem
	var meta, from sql.NullString
	err := r.Scan(&b.ID, &b.Session, &b.Kind, &b.Text, &meta, &from, &b.Source, &b.Message, &b.Recipient, &b.Hop, &b.At)
	b.Meta, b.Provenance = rawJSON(meta), rawJSON(from)
	return b, err
}
