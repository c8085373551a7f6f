package ledger

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/teamctl/teamctl/team"
)

const entryCols = `id, session, seq, kind, content, coalesce(raw, ''), meta_json, channel, provenance, coalesce(source, ''), coalesce(job, 0), at`

const (
	sqlEntryPut = `INSERT INTO session_entries(session, seq, kind, content, raw, meta_json, channel, provenance, source, job, at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`
	// By its source, or by that of an item of the backlog which it has.
	sqlEntrySource = `SELECT ` + entryCols + ` FROM session_entries WHERE session = ?1 AND source = ?2
		UNION ALL SELECT ` + entryCols + ` FROM session_entries WHERE session = ?1 AND seq =
			(SELECT b.entry FROM session_backlog b WHERE b.session = ?1 AND b.source = ?2 AND b.kind <> 'resume' AND b.entry IS NOT NULL) LIMIT 1`
	sqlEntries     = `SELECT ` + entryCols + ` FROM session_entries WHERE session = ? AND seq > ? ORDER BY seq`
	sqlEntryNewest = `SELECT ` + entryCols + ` FROM session_entries WHERE session = ? AND kind = ? ORDER BY seq DESC LIMIT 1`
	sqlTurnAnswers = `SELECT coalesce(sum(kind = 'assistant'), 0), coalesce(sum(meta_json ->> '$.sums'), 0) FROM session_entries
		WHERE session = ? AND job = ? AND kind IN ('assistant', 'compaction')`
	sqlTurnSubject = `SELECT ` + entryCols + ` FROM session_entries WHERE session = ?1 AND kind = 'user' AND seq <
		coalesce((SELECT min(seq) FROM session_entries WHERE session = ?1 AND job = ?2 AND kind = 'assistant'), 9223372036854775807) ORDER BY seq DESC LIMIT 1`
	sqlSeenFiles = `SELECT f.key, f.value FROM (SELECT seq, kind, meta_json FROM session_entries WHERE session = ? ORDER BY seq DESC LIMIT ?) e,
		json_each(e.meta_json, '$.seen') f WHERE e.kind = 'tool_result' AND e.meta_json IS NOT NULL AND f.atom IS NOT NULL ORDER BY e.seq`
	sqlSessionSeq = `UPDATE sessions SET last_seq = last_seq + 1, updated_at = ? WHERE session_key = ? RETURNING last_seq`
)

// Entries returns at most limit (0: all) entries of a session's transcript after
// sequence number after, in order.
func (l *Ledger) Entries(ctx context.Context, session string, after int64, limit int) ([]Entry, error) {
	q, args := limited(sqlEntries, []any{session, after}, limit)
	return read(ctx, l.db, "read the transcript of "+session, scanEntry, q, args...)
}

// NewestEntry returns the newest entry of a kind; ok is false without one.
func (l *Ledger) NewestEntry(ctx context.Context, session string, kind EntryKind) (e Entry, ok bool, err error) {
	list, err := read(ctx, l.db, "read the transcript of "+session, scanEntry, sqlEntryNewest, session, kind)
	if err != nil || len(list) == 0 {
		return e, false, err
	}
	return list[0], true, nil
}

// TurnSoFar is what a turn has had since it began, including entries that a compaction has replaced.
type TurnSoFar struct {
	Answers   int
	Summaries int   // answers that summarise the conversation, for compactions
	Subject   Entry // the newest user entry before the first answer: what the turn is about
}

// TurnSoFar returns what a turn has had so far.
func (l *Ledger) TurnSoFar(ctx context.Context, session string, job int64) (TurnSoFar, error) {
	counts, err := read(ctx, l.db, "count the answers of turn "+itoa(job), func(r *sql.Rows) (so TurnSoFar, err error) {
		err = r.Scan(&so.Answers, &so.Summaries)
		return so, err
	}, sqlTurnAnswers, session, job)
	if err != nil {
		return TurnSoFar{}, err
	}
	list, err := read(ctx, l.db, "read the subject of turn "+itoa(job), scanEntry, sqlTurnSubject, session, job)
	if err != nil {
		return TurnSoFar{}, err
	}
	so := counts[0]
	if len(list) > 0 {
		so.Subject = list[0]
	}
	return so, nil
}

// EntryOf returns the entry of a session that has the input of a source, which may be one
// that stands for the whole backlog; ok is false as long as there is none.
func (l *Ledger) EntryOf(ctx context.Context, session, source string) (e Entry, ok bool, err error) {
	list, err := read(ctx, l.db, "read the transcript of "+session, scanEntry, sqlEntrySource, session, source)
	if err != nil || len(list) == 0 {
		return e, false, err
	}
	return list[0], true, nil
}

// SeenFiles returns the hashes of the files whose content the tools of a session have
// shown or written, by path, as its newest entries say: that many
// are read.
func (l *Ledger) SeenFiles(ctx context.Context, session string, entries int) (map[string]string, error) {
	type file struct{ path, sum string }
	list, err := read(ctx, l.db, "read what "+session+" has seen", func(r *sql.Rows) (f file, err error) {
		err = r.Scan(&f.path, &f.sum)
		return f, err
	}, sqlSeenFiles, session, entries)
	if err != nil {
		return nil, err
	}
	seen := map[string]string{}
	for _, f := range list {
		seen[f.path] = f.sum
	}
	return seen, nil
}

// entry appends an entry; one whose source is known already is returned as it is, and
// fresh is false.
func (t *tx) entry(session string, n NewEntry, job int64) (e Entry, fresh bool, err error) {
	if n.Source != "" {
		found, err := t.one(sqlEntrySource, func(r *sql.Rows) (err error) {
			e, err = scanEntry(r)
			return err
		}, session, n.Source)
		if err != nil || found {
			return e, false, err
		}
	}
	switch n.Kind {
	case EntryUser, EntryAssistant, EntryToolResult, EntryEvent, EntryCompaction:
	default:
		return e, false, team.Errorf(team.CodeInvalid, "unknown kind of entry %q", n.Kind)
	}
	for what, raw := range map[string][]byte{"meta": n.Meta, "provenance": n.Provenance} {
		if _, err := object("the "+what+" of an entry", raw); err != nil {
			return e, false, err
		}
	}
	if n.Channel == "" {
		n.Channel = team.ChannelInternal
	}
	e = Entry{Session: session, NewEntry: n, Job: job, At: t.now}
	if e.Seq, _, err = value[int64](t, sqlSessionSeq, t.now, session); err != nil {
		return e, false, err
	}
	t.wrote = true
	e.ID, _, err = value[int64](t, sqlEntryPut, session, e.Seq, n.Kind, n.Content, orNull(n.Raw), jsonOrNull(n.Meta), n.Channel,
		jsonOrNull(n.Provenance), orNull(n.Source), orNull(job), t.now)
	return e, true, err
}

// entries appends entries in order.
func (t *tx) entries(session string, list []NewEntry, job int64) ([]Entry, error) {
	out := make([]Entry, 0, len(list))
	for _, n := range list {
		e, _, err := t.entry(session, n, job)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// evidence is what makes a delivery accepted: where its text is in the transcript.
func (e Entry) evidence() string { return fmt.Sprintf("entry %d of the transcript", e.Seq) }

func scanEntry(r *sql.Rows) (Entry, error) {
	var e Entry
	var meta, from sql.NullString
	err := r.Scan(&e.ID, &e.Session, &e.Seq, &e.Kind, &e.Content, &e.Raw, &meta, &e.Channel, &from, &e.Source, &e.Job, &e.At)
	e.Meta, e.Provenance = rawJSON(meta), rawJSON(from)
	return e, err
}
