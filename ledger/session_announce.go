package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/teamctl/teamctl/team"
)

const announceCols = `id, parent, child, key, text, meta_json, hop, coalesce(job, 0), at`

const (
	sqlAnnouncePut = `INSERT INTO session_announces(key, parent, child, text, meta_json, hop, waits, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key) DO NOTHING`
	sqlAnnounceTake    = `UPDATE session_announces SET job = ? WHERE parent = ? AND job IS NULL AND waits = 0`
	sqlAnnounceWaits   = `SELECT text FROM session_announces WHERE parent = ? AND waits = 1 ORDER BY id`
	sqlAnnounceTaken   = `UPDATE session_announces SET waits = 0 WHERE parent = ? AND waits = 1`
	sqlAnnounceKey     = `SELECT ` + announceCols + ` FROM session_announces WHERE key = ?`
	sqlAnnounceCollect = `UPDATE session_announces SET job = ?, waits = 0 WHERE key = ? AND parent = ? AND job IS NULL`
	sqlAnnounceHop     = `SELECT coalesce(max(hop), 0) FROM session_announces WHERE parent = ? AND waits = 1`
	sqlAnnouncesJob    = `SELECT ` + announceCols + ` FROM session_announces WHERE job = ? ORDER BY id`
	sqlAnnounces       = `SELECT ` + announceCols + ` FROM session_announces WHERE parent = ? ORDER BY id`
)

// Announces returns what the children of a session have announced to it, oldest first.
func (l *Ledger) Announces(ctx context.Context, parent string) ([]Announced, error) {
	return read(ctx, l.db, "read announces to "+parent, scanAnnounced, sqlAnnounces, parent)
}

// Announced returns the announce of a key; ok is false without it.
func (l *Ledger) Announced(ctx context.Context, key string) (a Announced, ok bool, err error) {
	list, err := read(ctx, l.db, "read "+key, scanAnnounced, sqlAnnounceKey, key)
	if err != nil || len(list) == 0 {
		return a, false, err
	}
	return list[0], true, nil
}

// announce tells the parent of the session of a turn that has ended, once for each turn. An
// idle parent gets an entry and a turn, a busy one an item of its backlog; where that is full
// the announce waits with the child. dropped says why it is not passed on.
func (t *tx) announce(j TurnJob) (dropped string, err error) {
	child, found, err := t.sessionRow(j.Session)
	if err != nil || !found || child.Owner == "" {
		return "", err
	}
	hop := j.Hop + 1
	parent, err := t.openSession(child.Owner, nil)
	if err == nil {
		err = t.hop(parent, hop)
	}
	key := AnnounceKey(child.Owner, child.Key, j.ID)
	if team.IsCode(err, team.CodeConflict) || team.IsCode(err, team.CodeLimit) {
		return err.Error(), t.dropAnnounce(child, key, hop, err)
	}
	if err != nil {
		return "", err
	}
	a, err := t.report(parent, child, j)
	if err != nil {
		return "", err
	}
	text, meta := fmt.Sprintf("[@agent:%s#%s] finish", a.SourceAgentName, a.SourceAgentID), json.RawMessage(mustJSON(a))
	busy, err := t.busy(parent.Key)
	if err != nil {
		return "", err
	}
	waiting, _, err := value[int](t, sqlBacklogCount, parent.Key)
	if err != nil {
		return "", err
	}
	full := busy && waiting >= MaxBacklog
	n, err := t.exec(sqlAnnouncePut, key, parent.Key, child.Key, text, string(meta), hop, full, t.now)
	if err != nil || n == 0 {
		return "", err
	}
	if err := t.event(Event{What: team.EventSessionAnnounced, ID: parent.Key, Data: json.RawMessage(mustJSON(map[string]any{
		"key": key, "child": child.Key, "status": a.Result.Status, "hop": hop, "waits": full}))}); err != nil || full {
		return "", err
	}
	from := json.RawMessage(mustJSON(map[string]string{"session": child.Key, "kind": "announce"}))
	if busy {
		return "", t.backlog(parent.Key, BacklogItem{Kind: BacklogFinish, Text: text, Meta: meta, Provenance: from, Source: key, Hop: hop})
	}
	_, err = takeIn(t, TakeIn{Session: parent.Key, Cause: team.CauseAnnounce, Lane: team.LaneAnnounce, Hop: hop,
		Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: text, Meta: meta, Provenance: from, Source: key}}}})
	return "", err
}

// dropAnnounce records that an announce is not passed on. The lead is told of a chain that
// was too long; a parent that was closed wants to know nothing.
func (t *tx) dropAnnounce(child Session, key string, hop int, why error) error {
	err := t.event(Event{What: team.EventSessionDropped, ID: child.Owner, Data: json.RawMessage(mustJSON(map[string]any{
		"key": key, "child": child.Key, "hop": hop, "reason": team.ReasonOf(why)}))})
	if err != nil || !team.IsCode(why, team.CodeLimit) {
		return err
	}
	m, err := t.memberBySession(child.Member)
	if team.IsCode(err, team.CodeNotFound) || err == nil && m.Name == team.LeadName {
		return nil
	}
	if err != nil {
		return err
	}
	n := Notice{Kind: team.KindError, IdemKey: "dropped:" + key, Summary: "a result of a child of " + m.Name + " was dropped",
		Text: fmt.Sprintf("The result of child %s of %s was not passed on: %v. session_history has it; teamctl settings %s N allows more.", child.Key, m.Name, why, SettingMaxHops)}
	n.fill()
	_, err = t.notice(m, n)
	return err
}

// collect takes announces that a call has returned the results of: no turn begins for them,
// and none is shown them.
func (t *tx) collect(j TurnJob, keys []string) error {
	for _, key := range keys {
		if _, err := t.exec(sqlBacklogOut, j.Session, key); err != nil {
			return err
		}
		if _, err := t.exec(sqlAnnounceCollect, j.ID, key, j.Session); err != nil {
			return err
		}
	}
	return nil
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
