package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// A member is identified by its session, and most tables refer to that. Rows that carry
// the name too, for a query or for people, are updated in one transaction (sqlRenames).
// Messages and events are append-only: they keep the name of their time, and the session
// connects the names.
//
// The supervisor moves the files that carry the name, so a rename takes three writes: begin
// reserves the new name, apply changes it, end records that the files have it. The old name
// is free after the last one.

// RenameState is how far a rename has come.
type RenameState string

// States of renames.
const (
	RenameBegun   RenameState = "begun"   // the new name is reserved and not used yet
	RenameApplied RenameState = "applied" // the ledger has it, files may still have the old one
	RenameDone    RenameState = "done"
)

// Rename is one change of a member's name.
type Rename struct {
	ID      int64       `json:"id"`
	Session string      `json:"session"`
	Was     string      `json:"was"`
	Name    string      `json:"name"`
	State   RenameState `json:"state"`
	At      int64       `json:"at"` // when it began, in Unix milliseconds
}

const (
	renameCols     = `id, session, was, name, state, at`
	sqlRenamesOpen = `SELECT ` + renameCols + ` FROM renames WHERE state <> 'done' ORDER BY id`
	sqlRenamesOf   = `SELECT ` + renameCols + ` FROM renames WHERE state <> 'begun' AND session IN
		(SELECT sessionKey FROM members WHERE name = (SELECT name FROM members WHERE sessionKey = ?)) ORDER BY id`
	sqlRenameGet   = `SELECT ` + renameCols + ` FROM renames WHERE id = ?`
	sqlRenamePut   = `INSERT INTO renames(session, was, name, state, at) VALUES (?, ?, ?, 'begun', ?) RETURNING id`
	sqlRenameState = `UPDATE renames SET state = ? WHERE id = ?`
	sqlRenameDrop  = `DELETE FROM renames WHERE id = ?`
	// A member that left and came back since has a newer session with the same name.
	sqlFormerMember = sqlMembers + ` WHERE name = (SELECT name FROM members WHERE sessionKey =
		(SELECT session FROM renames WHERE was = ? AND state <> 'begun' ORDER BY id DESC LIMIT 1))
		ORDER BY removedAt IS NOT NULL, (` + neverRan + `), removedAt DESC, rowid DESC LIMIT 1`
	// Former members that ran or had joined still have a worktree, a log or mail under the name.
	sqlNameLeft = `SELECT count(*) FROM members WHERE name = ? COLLATE NOCASE AND removedAt IS NOT NULL AND NOT (` + neverRan + `)`
	// A removed member that never ran: its spawn failed and left nothing.
	neverRan = `removedAt IS NOT NULL AND startedAt = 0 AND coalesce(spec ->> '$.agent', '') <> '` + team.AgentExternal + `'`
)

// sqlRenames changes the name ?1 to ?2. All sessions of the name change together, because
// they share their files.
var sqlRenames = []string{
	// A delivery to a failed spawn, which was dropped, may have the new name.
	`UPDATE OR REPLACE deliveries SET recipient = ?2 WHERE session IN (SELECT sessionKey FROM members WHERE name = ?1 COLLATE NOCASE)
		AND recipient = ?1`,
	`UPDATE tasks SET ownerName = ?2 WHERE owner IN (SELECT sessionKey FROM members WHERE name = ?1 COLLATE NOCASE)`,
	`UPDATE tasks SET verifyBy = ?2 WHERE verifyBy = ?1 COLLATE NOCASE AND status NOT IN ('completed', 'failed')`,
	`UPDATE file_leases SET name = ?2 WHERE name = ?1 COLLATE NOCASE`,
	`UPDATE merges SET member = ?2 WHERE session IN (SELECT sessionKey FROM members WHERE name = ?1 COLLATE NOCASE)`,
	`UPDATE verifications SET name = ?2 WHERE session IN (SELECT sessionKey FROM members WHERE name = ?1 COLLATE NOCASE)`,
	`UPDATE approvals SET name = ?2 WHERE state = 'pending' AND session IN (SELECT sessionKey FROM members WHERE name = ?1 COLLATE NOCASE)`,
	// edge.FROM.type.TO; no name has a dot.
	`UPDATE OR REPLACE settings SET name = '` + EdgePrefix + `' || ?2 || substr(name, length('` + EdgePrefix + `' || ?1) + 1)
		WHERE name LIKE '` + EdgePrefix + `' || ?1 || '.%'`,
	`UPDATE OR REPLACE settings SET name = substr(name, 1, length(name) - length(?1)) || ?2 WHERE name LIKE '` + EdgePrefix + `%.' || ?1`,
	// Members' budgets are keyed by name.
	`UPDATE settings SET value = json_remove(json_set(value, '$.members."' || ?2 || '"', json(json_extract(value, '$.members."' || ?1 || '"'))),
		'$.members."' || ?1 || '"') WHERE name = 'budgets' AND json_type(value, '$.members."' || ?1 || '"') IS NOT NULL`,
}

// sqlMemberRename comes last, because sqlRenames finds the member by its old name. ?3 and ?4
// are the agent ids.
const sqlMemberRename = `UPDATE members SET name = ?2, agentId = CASE WHEN agentId = ?3 COLLATE NOCASE THEN ?4 ELSE agentId END
	WHERE name = ?1 COLLATE NOCASE`

// BeginRename reserves a new name for the member of a session, which must have no process.
// An open rename of the member to the same name is returned again.
//
// Errors: CodeNotFound (member_not_found), CodeInvalid (the lead; an invalid name),
// CodeConflict (name_taken; member_running; external for a program that joined; busy for a
// member with another open rename).
func (l *Ledger) BeginRename(ctx context.Context, session, name string) (Rename, error) {
	return write[Rename](ctx, l, opRenameBegin, renameArgs{Session: session, Name: name})
}

// ApplyRename changes the name everywhere in the ledger.
func (l *Ledger) ApplyRename(ctx context.Context, id int64) (Rename, error) {
	return write[Rename](ctx, l, opRenameApply, renameArgs{ID: id})
}

// EndRename records that the files of an applied rename have the new name.
func (l *Ledger) EndRename(ctx context.Context, id int64) error {
	_, err := write[none](ctx, l, opRenameEnd, renameArgs{ID: id})
	return err
}

// DropRename cancels a rename that was not applied; otherwise CodeConflict.
func (l *Ledger) DropRename(ctx context.Context, id int64) error {
	_, err := write[none](ctx, l, opRenameDrop, renameArgs{ID: id})
	return err
}

// OpenRenames returns the renames that are not done, oldest first.
func (l *Ledger) OpenRenames(ctx context.Context) ([]Rename, error) {
	return read(ctx, l.db, "read renames", scanRename, sqlRenamesOpen)
}

// Renames returns the renames of a member, its earlier sessions included, oldest first.
func (l *Ledger) Renames(ctx context.Context, session string) ([]Rename, error) {
	return read(ctx, l.db, "read renames of "+session, scanRename, sqlRenamesOf, session)
}

type renameArgs struct {
	ID      int64  `json:"id,omitempty"`
	Session string `json:"session,omitempty"`
	Name    string `json:"name,omitempty"`
}

func beginRename(t *tx, a renameArgs) (Rename, error) {
	m, err := t.memberBySession(a.Session)
	if err != nil {
		return Rename{}, err
	}
	open, err := t.renames()
	if err != nil {
		return Rename{}, err
	}
	for _, r := range open {
		if r.Session == m.SessionKey && strings.EqualFold(r.Name, a.Name) {
			return r, nil
		}
		if strings.EqualFold(r.Was, m.Name) || strings.EqualFold(r.Name, m.Name) {
			return Rename{}, team.Errorf(team.CodeConflict, "%s is being renamed to %s", r.Was, r.Name).WithReason(team.ReasonBusy).WithHint("teamctl ps")
		}
	}
	if err := t.renamable(m, a.Name); err != nil {
		return Rename{}, err
	}
	if err := t.nameFree(m, a.Name, open); err != nil {
		return Rename{}, err
	}
	r := Rename{Session: m.SessionKey, Was: m.Name, Name: a.Name, State: RenameBegun, At: t.now}
	r.ID, _, err = value[int64](t, sqlRenamePut, r.Session, r.Was, r.Name, r.At)
	t.wrote = true
	return r, err
}

// renamable refuses a member that cannot be renamed now.
func (t *tx) renamable(m Member, name string) error {
	if m.Name == team.LeadName {
		return team.Errorf(team.CodeInvalid, "%s is the lead, which has its name in every team", m.Name).WithReason(team.ReasonLead)
	}
	if key, err := team.AgentKey(name); err != nil {
		return err
	} else if key != name {
		return team.Errorf(team.CodeInvalid, "%q cannot name a member", name).WithReason(team.ReasonInvalidName).WithHint("call it " + key)
	}
	switch {
	case m.RemovedAt != 0:
		roster, err := t.members()
		if err == nil && slices.ContainsFunc(roster, func(o Member) bool { return strings.EqualFold(o.Name, m.Name) }) {
			err = team.Errorf(team.CodeConflict, "%s is on the roster again", m.Name).WithReason(team.ReasonNameTaken).
				WithHint("teamctl rename " + m.Name + " " + name + " renames both")
		}
		return err
	case team.KindOf(m.Spec.Agent).External:
		return team.Errorf(team.CodeConflict, "%s is a program that has joined: it reads its mail by its name", m.Name).
			WithReason(team.ReasonExternal).WithHint("teamctl leave " + m.Name + " && teamctl join " + name)
	case m.Observed.Alive() || m.Desired == team.WantRunning && !m.Observed.Terminal():
		return ErrRunning(m, name)
	}
	return nil
}

// ErrRunning refuses to rename a member that runs or is about to be started: its processes
// know their name. CodeConflict member_running.
func ErrRunning(m Member, name string) error {
	return team.Errorf(team.CodeConflict, "%s is %s: a member is renamed while it is stopped", m.Name, m.Observed).
		WithReason(team.ReasonMemberRunning).
		WithHint("teamctl rename --restart " + m.Name + " " + name)
}

// NameFree refuses a new name for the member of a session if BeginRename would refuse it because
// another member has it, and changes nothing.
func (l *Ledger) NameFree(ctx context.Context, session, name string) error {
	m, err := l.MemberBySession(ctx, session)
	if err != nil {
		return err
	}
	roster, err := l.Members(ctx, false)
	if err != nil {
		return err
	}
	open, err := l.OpenRenames(ctx)
	if err != nil {
		return err
	}
	return nameFree(m, name, roster, open, func(name string) (bool, error) {
		n, err := read(ctx, l.db, "read former members", scanCount, sqlNameLeft, name)
		return len(n) > 0 && n[0] > 0, err
	})
}

func scanCount(r *sql.Rows) (n int, err error) {
	err = r.Scan(&n)
	return n, err
}

func (t *tx) nameFree(m Member, name string, open []Rename) error {
	roster, err := t.members()
	if err != nil {
		return err
	}
	return nameFree(m, name, roster, open, func(name string) (bool, error) {
		n, _, err := value[int](t, sqlNameLeft, name)
		return n > 0, err
	})
}

// nameFree refuses a name that a current or former member has, or that an open rename
// reserves.
func nameFree(m Member, name string, roster []Member, open []Rename, former func(string) (bool, error)) (err error) {
	left := func(name string) bool {
		is, lerr := former(name)
		if err == nil {
			err = lerr
		}
		return is
	}
	used := func(name string) bool { return nameUsed(name, roster, open) || left(name) }
	taken := team.Errorf(team.CodeConflict, "the name %q is taken; members: %s", name, names(roster)).WithReason(team.ReasonNameTaken)
	switch {
	case !used(name):
		return err
	case nameUsed(name, roster, open):
		return taken.WithHint("teamctl rename " + m.Name + " " + team.UniqueName(name, used))
	}
	other := team.UniqueName(name, used)
	return team.Errorf(team.CodeConflict, "the name %q belongs to a member that has left, and to its worktree and log", name).WithReason(team.ReasonNameTaken).
		WithHint("teamctl rename " + name + " " + other + " && teamctl rename " + m.Name + " " + name)
}

// nameUsed reports whether a member on the roster has a name or an open rename reserves it.
func nameUsed(name string, roster []Member, open []Rename) bool {
	return slices.ContainsFunc(roster, func(m Member) bool { return strings.EqualFold(m.Name, name) }) ||
		slices.ContainsFunc(open, func(r Rename) bool { return strings.EqualFold(r.Was, name) || strings.EqualFold(r.Name, name) })
}

func applyRename(t *tx, a renameArgs) (Rename, error) {
	r, err := t.rename(a.ID)
	if err != nil || r.State != RenameBegun {
		return r, err
	}
	m, err := t.memberBySession(r.Session)
	if err != nil {
		return r, err
	}
	if err := t.renamable(m, r.Name); err != nil { // it may have been started since
		return r, err
	}
	row, err := t.team()
	if err != nil {
		return r, err
	}
	for _, q := range sqlRenames {
		if _, err := t.exec(q, r.Was, r.Name); err != nil {
			return r, err
		}
	}
	if _, err := t.exec(sqlMemberRename, r.Was, r.Name, team.AgentID(r.Was, row.Key), team.AgentID(r.Name, row.Key)); err != nil {
		return r, err
	}
	if _, err := t.exec(sqlRenameState, RenameApplied, r.ID); err != nil {
		return r, err
	}
	r.State = RenameApplied
	return r, t.event(Event{What: team.EventMemberRenamed, ID: r.Name, Before: r.Was, After: r.Name,
		Data: json.RawMessage(mustJSON(sessionData{r.Session}))})
}

func endRename(t *tx, a renameArgs) (none, error) {
	r, err := t.rename(a.ID)
	if err == nil && r.State == RenameBegun {
		err = team.Errorf(team.CodeConflict, "the rename of %s was not applied", r.Was)
	}
	if err == nil {
		_, err = t.exec(sqlRenameState, RenameDone, r.ID)
	}
	return none{}, err
}

func dropRename(t *tx, a renameArgs) (none, error) {
	r, err := t.rename(a.ID)
	if err == nil && r.State != RenameBegun {
		err = team.Errorf(team.CodeConflict, "%s was renamed to %s", r.Was, r.Name)
	}
	if err == nil {
		_, err = t.exec(sqlRenameDrop, r.ID)
	}
	return none{}, err
}

// renames returns the open renames.
func (t *tx) renames() ([]Rename, error) {
	var out []Rename
	err := t.each(sqlRenamesOpen, func(rows *sql.Rows) error {
		r, err := scanRename(rows)
		out = append(out, r)
		return err
	})
	return out, err
}

func (t *tx) rename(id int64) (r Rename, err error) {
	found, err := t.one(sqlRenameGet, func(rows *sql.Rows) (err error) {
		r, err = scanRename(rows)
		return err
	}, id)
	if err == nil && !found {
		err = team.Errorf(team.CodeNotFound, "no rename %d", id)
	}
	return r, err
}

// formerly returns the member that had a name before it was renamed.
func (t *tx) formerly(name string) (m Member, found bool, err error) {
	found, err = t.one(sqlFormerMember, func(r *sql.Rows) (err error) {
		m, err = scanMember(r)
		return err
	}, name)
	return m, found, err
}

func scanRename(r *sql.Rows) (out Rename, err error) {
	err = r.Scan(&out.ID, &out.Session, &out.Was, &out.Name, &out.State, &out.At)
	return out, err
}
