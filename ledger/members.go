package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"github.com/teamctl/teamctl/team"
)

const memberCols = `sessionKey, agentId, coalesce(name, ''), teamRole, joinedAt, coalesce(removedAt, 0), spec, color,
	desired, observed, activity, activityAt, ready, generation, pid, paneId, startedAt, restarts, failures, nextStart,
	exitText, reason, worktree, branch, base, activityFor, activityUntil, stopOrder, endedAt, turnError`

const (
	sqlMembers         = `SELECT ` + memberCols + ` FROM members`
	sqlMembersNow      = sqlMembers + ` WHERE removedAt IS NULL ORDER BY role = 'member', joinedAt, rowid`
	sqlMembersAll      = sqlMembers + ` ORDER BY role = 'member', joinedAt, rowid`
	sqlMemberBySession = sqlMembers + ` WHERE sessionKey = ?`
	// The current roster comes first, then former members, the latest first, then
	// those that never ran.
	sqlMemberFind = sqlMembers + ` WHERE name = ?1 COLLATE NOCASE OR agentId = ?1 COLLATE NOCASE OR sessionKey = ?1
		ORDER BY removedAt IS NOT NULL, (` + neverRan + `), removedAt DESC, rowid DESC LIMIT 1`
	sqlMemberPut = `INSERT INTO members(sessionKey, agentId, name, role, teamRole, joinedAt, spec, color,
		desired, observed, activity, activityAt, ready, generation, pid, paneId, startedAt, restarts, failures, nextStart,
		exitText, reason, worktree, branch, base)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlMemberGone = `UPDATE members SET removedAt = ?, ready = 0, pid = 0, desired = 'stopped' WHERE sessionKey = ?`
)

// AddMember adds a member to the roster. Its name is made unique there with a
// suffix (then renamed is true) or, with exact and for the lead, refused:
// CodeConflict name_taken. Empty fields get defaults: a session key, an agent
// id, the next colour, the role executor, and the states running, pending and
// unknown. A spawn allowed by an approval adds a member once: the same
// Spec.Approval and Spec.Nth again return the first, even if it has left.
func (l *Ledger) AddMember(ctx context.Context, m Member, exact bool) (added Member, renamed bool, err error) {
	if m.SessionKey == "" {
		m.SessionKey = team.TeammateSessionKey(m.Spec.AgentType)
	}
	a, err := write[addedMember](ctx, l, opMemberAdd, addMemberArgs{m, exact})
	return a.Member, a.Renamed, err
}

// Member finds a member by name, agent id or session key: the one on the
// roster, otherwise the one that left last, otherwise the one that had the name
// before it was renamed. CodeNotFound (member_not_found) lists the existing ones.
func (l *Ledger) Member(ctx context.Context, name string) (Member, error) {
	ms, err := read(ctx, l.db, "read member "+name, scanMember, sqlMemberFind, name)
	if err != nil {
		return Member{}, err
	}
	if len(ms) > 0 && !ms[0].neverRan() {
		return ms[0], nil
	}
	was, _, _ := team.ParseAgentID(name)
	former, err := read(ctx, l.db, "read member "+name, scanMember, sqlFormerMember, was)
	if ms = append(former, ms...); err != nil || len(ms) > 0 {
		if err != nil {
			return Member{}, err
		}
		return ms[0], nil
	}
	roster, err := l.Members(ctx, false)
	if err != nil {
		return Member{}, err
	}
	return Member{}, errNoMember(name, roster)
}

// neverRan reports whether the member left the roster without ever running: its spawn failed.
func (m Member) neverRan() bool {
	return m.RemovedAt != 0 && m.StartedAt == 0 && !team.KindOf(m.Spec.Agent).External
}

// MemberBySession returns the row of a session, on the roster or not.
func (l *Ledger) MemberBySession(ctx context.Context, session string) (Member, error) {
	ms, err := read(ctx, l.db, "read member "+session, scanMember, sqlMemberBySession, session)
	if err == nil && len(ms) == 0 {
		err = errNoMember(session, nil)
	}
	if err != nil {
		return Member{}, err
	}
	return ms[0], nil
}

// Members returns the roster, the lead first, then by the time of joining.
func (l *Ledger) Members(ctx context.Context, includeRemoved bool) ([]Member, error) {
	q := sqlMembersNow
	if includeRemoved {
		q = sqlMembersAll
	}
	return read(ctx, l.db, "read members", scanMember, q)
}

// RemoveMember removes a member from the roster. Its row stays for its tasks
// and mail; the same transaction releases what it holds, and removes its edges
// and what it has changed and asked for in worktrees.
// It may be repeated.
func (l *Ledger) RemoveMember(ctx context.Context, session string) error {
	_, err := write[none](ctx, l, opMemberRemove, session)
	return err
}

type addMemberArgs struct {
	Member Member `json:"member"`
	Exact  bool   `json:"exact"`
}

type addedMember struct {
	Member  Member `json:"member"`
	Renamed bool   `json:"renamed"`
}

func addMember(t *tx, a addMemberArgs) (addedMember, error) {
	m := a.Member
	if m.Name == "" || m.SessionKey == "" {
		return addedMember{}, team.Errorf(team.CodeInvalid, "a member needs a name and a session key")
	}
	if err := checkName(m.Name); err != nil {
		return addedMember{}, err
	}
	if m.Spec.Approval != 0 {
		if there, found, err := t.approved(m.Spec.Approval, m.Spec.Nth); found || err != nil {
			return addedMember{there, there.Name != m.Name}, err
		}
	}
	roster, err := t.members()
	if err != nil {
		return addedMember{}, err
	}
	asked := m.Name
	open, err := t.renames()
	if err != nil {
		return addedMember{}, err
	}
	if m.Name, err = freeName(asked, roster, open, a.Exact || strings.EqualFold(asked, team.LeadName)); err != nil {
		return addedMember{}, err
	}
	if err := t.memberDefaults(&m, asked, roster); err != nil {
		return addedMember{}, err
	}
	m.Spec.PlanRequired = m.Spec.PlanRequired || m.Spec.Mode == team.ModePlan
	role := "member"
	if m.Name == team.LeadName {
		role = "lead"
	}
	if _, err := t.exec(sqlMemberPut, m.SessionKey, m.AgentID, m.Name, role, m.Role, m.JoinedAt, mustJSON(m.Spec), m.Color,
		m.Desired, m.Observed, m.Activity, m.ActivityAt, m.Ready, m.Generation, m.PID, m.PaneID, m.StartedAt, m.Restarts,
		m.Failures, m.NextStart, m.ExitText, m.Reason, m.Worktree, m.Branch, m.Base); err != nil {
		return addedMember{}, err
	}
	err = t.event(Event{What: team.EventMemberAdded, ID: m.Name, After: string(m.Observed),
		Data: json.RawMessage(mustJSON(sessionData{m.SessionKey}))})
	return addedMember{m, m.Name != asked}, err
}

// approved finds the member whose spawn an approval allowed, on the roster or
// not.
func (t *tx) approved(approval int64, nth int) (m Member, found bool, err error) {
	err = t.each(sqlMembersAll, func(r *sql.Rows) error {
		one, err := scanMember(r)
		if err == nil && one.Spec.Approval == approval && one.Spec.Nth == nth {
			m, found = one, true
		}
		return err
	})
	return m, found, err
}

type sessionData struct {
	Session string `json:"session"`
}

// checkName rejects invalid member names. Names become paths, branches and
// senders: every caller that adds a member has turned the name into its key.
func checkName(name string) error {
	if name == team.LeadName {
		return nil
	}
	key, err := team.AgentKey(name)
	if err == nil && !strings.EqualFold(key, name) {
		err = team.Errorf(team.CodeInvalid, "invalid member name %q", name).WithReason(team.ReasonInvalidName).WithHint("use " + key)
	}
	return err
}

func freeName(asked string, roster []Member, open []Rename, exact bool) (string, error) {
	taken := func(name string) bool { return nameUsed(name, roster, open) }
	if exact && taken(asked) {
		return "", team.Errorf(team.CodeConflict, "the name %q is taken; members: %s", asked, names(roster)).
			WithReason(team.ReasonNameTaken).WithHint("choose another name")
	}
	return team.UniqueName(asked, taken), nil
}

func (t *tx) memberDefaults(m *Member, asked string, roster []Member) error {
	if m.AgentID == "" || m.Name != asked {
		_, key, ok := team.ParseAgentID(m.AgentID)
		if !ok {
			row, err := t.team()
			if err != nil {
				return err
			}
			key = row.Key
		}
		m.AgentID = team.AgentID(m.Name, key)
	}
	if m.Color == "" && m.Name != team.LeadName { // the lead has none, as in recorded teams
		used := make([]string, 0, len(roster))
		for _, o := range roster {
			if o.Name != team.LeadName {
				used = append(used, o.Color)
			}
		}
		m.Color = team.NextColor(used)
	}
	m.JoinedAt = orDefault(m.JoinedAt, t.now)
	m.Role = orDefault(m.Role, team.RoleExecutor)
	m.Desired = orDefault(m.Desired, team.WantRunning)
	m.Observed = orDefault(m.Observed, team.Pending)
	m.Activity = orDefault(m.Activity, team.ActivityUnknown)
	m.RemovedAt = 0
	return nil
}

func removeMember(t *tx, session string) (none, error) {
	m, err := t.memberBySession(session)
	if err != nil || m.RemovedAt != 0 {
		return none{}, err
	}
	if _, err := t.exec(sqlMemberGone, t.now, session); err != nil {
		return none{}, err
	}
	if _, err := releaseOwner(t, ownerArgs{session, m.Name + " left the team"}); err != nil {
		return none{}, err
	}
	if err := t.dropMail(m); err != nil {
		return none{}, err
	}
	if err := t.dropEdges(m.Name); err != nil {
		return none{}, err
	}
	if err := t.dropFiles(m); err != nil {
		return none{}, err
	}
	return none{}, t.event(Event{What: team.EventMemberRemoved, ID: m.Name, Before: string(m.Observed),
		Data: json.RawMessage(mustJSON(sessionData{session}))})
}

// members returns the roster inside a transaction.
func (t *tx) members() ([]Member, error) {
	var out []Member
	err := t.each(sqlMembersNow, func(r *sql.Rows) error {
		m, err := scanMember(r)
		out = append(out, m)
		return err
	})
	return out, err
}

func (t *tx) memberBySession(session string) (m Member, err error) {
	found, err := t.one(sqlMemberBySession, func(r *sql.Rows) (err error) {
		m, err = scanMember(r)
		return err
	}, session)
	if err == nil && !found {
		err = errNoMember(session, nil)
	}
	return m, err
}

func scanMember(r *sql.Rows) (Member, error) {
	var m Member
	var spec, order string
	if err := r.Scan(&m.SessionKey, &m.AgentID, &m.Name, &m.Role, &m.JoinedAt, &m.RemovedAt, &spec, &m.Color,
		&m.Desired, &m.Observed, &m.Activity, &m.ActivityAt, &m.Ready, &m.Generation, &m.PID, &m.PaneID, &m.StartedAt,
		&m.Restarts, &m.Failures, &m.NextStart, &m.ExitText, &m.Reason, &m.Worktree, &m.Branch, &m.Base,
		&m.WaitsFor, &m.LimitedTo, &order, &m.EndedAt, &m.TurnError); err != nil {
		return m, err
	}
	if order != "" {
		if err := json.Unmarshal([]byte(order), &m.StopOrder); err != nil {
			return m, err
		}
	}
	return m, json.Unmarshal([]byte(spec), &m.Spec)
}

func errNoMember(name string, roster []Member) error {
	e := team.Errorf(team.CodeNotFound, "no member %q", name).WithReason(team.ReasonMemberNotFound)
	if len(roster) == 0 {
		return e
	}
	if near := team.Closest(name, namesOf(roster)); near != "" {
		return e.WithHint("did you mean " + near + "? members: " + names(roster))
	}
	return e.WithHint("members: " + names(roster))
}

func names(roster []Member) string { return strings.Join(namesOf(roster), ", ") }

func namesOf(roster []Member) []string {
	all := make([]string, len(roster))
	for i, m := range roster {
		all[i] = m.Name
	}
	return all
}

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
