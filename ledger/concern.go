package ledger

import (
	"time"

	"github.com/teamctl/teamctl/team"
)

// Most operations of an agent with a model concern nobody else: with hundreds of them
// in one process, each would wake all others, and they would read for nothing. So the
// operations that such agents write all the time name those whom they concern. All
// others, and the commits of other processes, concern everyone.

const (
	sqlDataVersion = `PRAGMA data_version`
	sqlMemberOf    = `SELECT member FROM sessions WHERE session_key = ?`
	sqlLaneWaits   = `SELECT DISTINCT s.member FROM sessions s JOIN (
		SELECT session FROM turn_jobs WHERE state = 'queued' AND lane = ?1
		UNION ALL SELECT session FROM turn_jobs WHERE state = 'running' AND yielded = 1 AND lane = ?1) w ON w.session = s.session_key`
	// versionWait is how long the watch waits for the write slot to ask whose a
	// commit was.
	versionWait = 50 * time.Millisecond
)

// reach is whom a commit concerns. The zero value is nobody, who only watches
// everything.
type reach struct {
	some    bool                // something was written
	all     bool                // everyone
	members map[string]struct{} // by session key
}

func (r *reach) everyone() { r.some, r.all = true, true }

func (r *reach) name(member string) {
	if r.members == nil {
		r.members = map[string]struct{}{}
	}
	r.members[member] = struct{}{}
}

// add adds something written that concerns o.
func (r *reach) add(o reach) {
	r.some, r.all = true, r.all || o.all
	for m := range o.members {
		r.name(m)
	}
}

// has reports whether a consumer is woken: one for a member, or one for everything
// ("").
func (r *reach) has(member string) bool {
	_, named := r.members[member]
	return r.some && (r.all || named || member == "")
}

// concern names a member, by its session key, that an operation marked near concerns.
func (t *tx) concern(member string) { t.reach.name(member) }

// concernOf names the member of a session.
func (t *tx) concernOf(session string) error {
	member, _, err := value[string](t, sqlMemberOf, session)
	t.concern(member)
	return err
}

// freed names the members whose turns wait for a place in a lane.
func (t *tx) freed(lane team.Lane) error {
	waits, err := column[string](t, sqlLaneWaits, lane)
	for _, m := range waits {
		t.concern(m)
	}
	return err
}

// committedByOthers reports whether another connection, of this process or another, has
// committed since it last did so; the version that a connection sees does not change by
// its own commits. The caller holds the write slot.
func (db *DB) committedByOthers() (bool, error) {
	v, _, err := value[int64](&tx{db: db}, sqlDataVersion)
	was := db.version
	db.version = v
	return v != was, err
}

// mayBeForeign reports whether a commit may be another connection's.
func (db *DB) mayBeForeign() bool {
	patience := time.NewTimer(versionWait)
	defer patience.Stop()
	select {
	case db.turn.token <- struct{}{}:
	case <-patience.C:
		return true
	}
	defer func() { <-db.turn.token }()
	if db.prep == nil || db.conn == nil {
		return true
	}
	foreign, err := db.committedByOthers()
	return foreign || err != nil
}
