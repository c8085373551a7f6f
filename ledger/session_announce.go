package ledger

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

const announceCols = `id, parent, child, key, text, meta_json, hop, coalesce(job, 0), at`

const (
	sqlAnnouncePut = `INSERT INTO session_announces(key, parent, child, text, meta_json, hop, waits, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key) DO NOTHING`
	sqlAnnounceTake  = `UPDATE session_announces SET job = ? WHERE parent = ? AND job IS NULL AND waits = 0`
	sqlAnnounceWaits = `SELECT text FROM session_announces WHERE parent = ? AND waits = 1 ORDER BY id`
	sqlAnnounceTaken = `UPDATE session_announces SET waits = 0 WHERE parent = ? AND waits = 1`
	sqlAnnouncesJob  = `SELECT ` + announceCols + ` FROM session_announces WHERE job = ? ORDER BY id`
	sqlAnnounces     = `SELECT ` + announceCols + ` FROM session_announces WHERE parent = ? ORDER BY id`
)

// Announces returns what the children of a session have announced to it, oldest first.
func (l *Ledger) Announces(ctx context.Context, parent string) ([]Announced, error) {
	return read(ctx, l.db, "read announces to "+parent, scanAnnounced, sqlAnnounces, parent)
}

// announce tells the parent of the turn's session. A known key changes nothing. An idle
// parent gets an entry and a turn, a busy one an item of its backlog; where that is full
// the announce waits with the child. dropped says why it is not passed on.
func (t *tx) announce(j TurnJob, a Announce) (dropped string, err error) {
	child, found, err := t.sessionRow(j.Session)
	if err != nil || !found || child.Owner == "" {
		return "", err
	}
	if _, err := object("an announce", a.Meta); err != nil {
		return "", err
	}
	if a.Key == "" || a.Text == "" || len(a.Meta) == 0 {
		return "", team.Errorf(team.CodeInvalid, "an announce needs a key, a text and an object")
	}
	parent, err := t.openSession(child.Owner, nil)
	if err == nil {
		err = t.hop(parent, j.Hop+1)
	}
	if team.IsCode(err, team.CodeConflict) || team.IsCode(err, team.CodeLimit) {
		return err.Error(), t.event(Event{What: team.EventSessionDropped, ID: child.Owner, Data: json.RawMessage(mustJSON(map[string]any{
			"key": a.Key, "hop": j.Hop + 1, "reason": team.ReasonOf(err)}))})
	}
	if err != nil {
		return "", err
	}
	busy, err := t.busy(parent.Key)
	if err != nil {
		return "", err
	}
	waiting, _, err := value[int](t, sqlBacklogCount, parent.Key)
	if err != nil {
		return "", err
	}
	full := busy && waiting >= MaxBacklog
	n, err := t.exec(sqlAnnouncePut, a.Key, parent.Key, child.Key, a.Text, string(a.Meta), j.Hop+1, full, t.now)
	if err != nil || n == 0 {
		return "", err
	}
	if err := t.event(Event{What: team.EventSessionAnnounced, ID: parent.Key, Data: json.RawMessage(mustJSON(map[string]any{
		"key": a.Key, "child": child.Key, "hop": j.Hop + 1, "waits": full}))}); err != nil || full {
		return "", err
	}
	from := json.RawMessage(mustJSON(map[string]string{"session": child.Key, "kind": "announce"}))
	if busy {
		return "", t.backlog(parent.Key, BacklogItem{Kind: BacklogFinish, Text: a.Text, Meta: a.Meta, Provenance: from, Source: a.Key, Hop: j.Hop + 1})
	}
	_, err = takeIn(t, TakeIn{Session: parent.Key, Cause: team.CauseAnnounce, Lane: team.LaneAnnounce, Hop: j.Hop + 1,
		Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: a.Text, Meta: a.Meta, Provenance: from, Source: a.Key}}}})
	return "", err
}

// busy reports whether a session has a turn that runs, or one that was put before all
// others.
func (t *tx) busy(session string) (bool, error) {
	open, err := t.jobs(sqlJobsOpen, session)
	for _, j := range open {
		if j.State == team.TurnRunning || j.First {
			return true, nil
		}
	}
	return false, err
}

// announces gives a turn the announces that no turn was shown yet.
func (t *tx) announces(j TurnJob) (out []Announced, err error) {
	if !j.First {
		if _, err := t.exec(sqlAnnounceTake, j.ID, j.Session); err != nil {
			return nil, err
		}
	}
	err = t.each(sqlAnnouncesJob, func(r *sql.Rows) error {
		a, err := scanAnnounced(r)
		out = append(out, a)
		return err
	}, j.ID)
	return out, err
}

func scanAnnounced(r *sql.Rows) (Announced, error) {
	var a Announced
	var meta string
	err := r.Scan(&a.ID, &a.Parent, &a.Child, &a.Key, &a.Text, &meta, &a.Hop, &a.Job, &a.At)
	a.Meta = json.RawMessage(meta)
	return a, err
}
