package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/team"
)

const sessionCols = `session_key, agent_id, active_agent_id, provider_override, model_override, deliver,
	coalesce(owner_session_key, ''), channel, routing, label, depth, member, state, last_seq, created_at, updated_at`

const (
	sqlSessionGet  = `SELECT ` + sessionCols + ` FROM sessions WHERE session_key = ?`
	sqlSessionList = `SELECT ` + sessionCols + ` FROM sessions WHERE (?1 = '' OR member = ?1) AND (?2 = '' OR owner_session_key = ?2)
		AND (?3 OR state = 'open') ORDER BY created_at, session_key`
	sqlSessionAdd = `INSERT INTO sessions(session_key, agent_id, active_agent_id, provider_override, model_override, deliver,
		owner_session_key, channel, routing, label, depth, member, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlSessionSet = `UPDATE sessions SET active_agent_id = ?, provider_override = ?, model_override = ?, deliver = ?, channel = ?, label = ?, updated_at = ?
		WHERE session_key = ?`
	sqlSessionClose    = `UPDATE sessions SET state = 'closed', updated_at = ? WHERE session_key = ? AND state = 'open'`
	sqlSessionReopen   = `UPDATE sessions SET state = 'open', updated_at = ? WHERE session_key = ?`
	sqlSessionChildren = `SELECT session_key FROM sessions WHERE owner_session_key = ? AND state = 'open'`
	sqlSessionOpenKids = `SELECT count(*) FROM sessions WHERE owner_session_key = ? AND state = 'open'`
)

// Settings of sessions and their defaults.
const (
	SettingLane         = "lane."            // with the name of the lane: how many of its turns run at once
	SettingSessionDepth = "session-depth"    // how deep children may be nested: 1, at most 5
	SettingChildren     = "session-children" // open children of a session: 5, at most 20
	SettingMaxHops      = "max-hops"         // injections in a row: 3
)

// Bounds of sessions.
const (
	defaultDepth    = 1
	MaxSessionDepth = 5
	DefaultChildren = 5
	MaxChildren     = 20
	defaultMaxHops  = 3
	MaxWakes        = 5 // of a session that are still to come
)

// NewSession describes a session to open.
type NewSession struct {
	Key      string          `json:"key"`
	Owner    string          `json:"owner,omitempty"`  // key of the parent session
	Member   string          `json:"member,omitempty"` // session key of its member; default the owner's
	Provider string          `json:"provider,omitempty"`
	Model    string          `json:"model,omitempty"`
	Deliver  bool            `json:"deliver,omitempty"`
	Channel  string          `json:"channel,omitempty"` // default internal
	Routing  json.RawMessage `json:"routing,omitempty"`
	Label    string          `json:"label,omitempty"`
}

// SessionPatch changes a session from its next turn on; nil fields stay.
type SessionPatch struct {
	Key      string  `json:"key"`
	AgentID  *string `json:"agentId,omitempty"` // its active spec
	Provider *string `json:"provider,omitempty"`
	Model    *string `json:"model,omitempty"` // together with Provider; both empty remove the override
	Deliver  *bool   `json:"deliver,omitempty"`
	Channel  *string `json:"channel,omitempty"`
	Label    *string `json:"label,omitempty"`
}

// SessionFilter narrows Sessions. The zero value is every open session.
type SessionFilter struct {
	Member string // session key of a member
	Owner  string // key of a parent session
	Closed bool   // closed ones too
}

// OpenSession makes a session, or returns the one that has its key and opens it again.
// A child gets the member of its parent. Errors: CodeLimit session_depth,
// too_many_children; CodeNotFound session_not_found for an unknown parent; CodeConflict
// session_closed for a closed one.
func (l *Ledger) OpenSession(ctx context.Context, in NewSession) (Session, error) {
	return write[Session](ctx, l, opSessionOpen, in)
}

// UpdateSession applies a patch. Errors: CodeNotFound session_not_found.
func (l *Ledger) UpdateSession(ctx context.Context, p SessionPatch) (Session, error) {
	return write[Session](ctx, l, opSessionUpdate, p)
}

// CloseSession closes a session and its children, and cancels their turns: what runs is
// marked, and its process ends it. Their transcripts stay. Errors: CodeNotFound
// session_not_found.
func (l *Ledger) CloseSession(ctx context.Context, key, why string) error {
	_, err := write[none](ctx, l, opSessionClose, closeArgs{key, why})
	return err
}

// Session returns one session; CodeNotFound (session_not_found) without it.
func (l *Ledger) Session(ctx context.Context, key string) (Session, error) {
	list, err := read(ctx, l.db, "read session "+key, scanSession, sqlSessionGet, key)
	if err == nil && len(list) == 0 {
		err = noSession(key)
	}
	if err != nil {
		return Session{}, err
	}
	return list[0], nil
}

// Sessions returns sessions in the order of their birth.
func (l *Ledger) Sessions(ctx context.Context, f SessionFilter) ([]Session, error) {
	return read(ctx, l.db, "read sessions", scanSession, sqlSessionList, f.Member, f.Owner, f.Closed)
}

type closeArgs struct {
	Key string `json:"key"`
	Why string `json:"why"`
}

func noSession(key string) error {
	return team.Errorf(team.CodeNotFound, "no session %q", key).WithReason(team.ReasonSessionNotFound).WithHint("teamctl session ls")
}

func openSession(t *tx, in NewSession) (Session, error) {
	k, err := team.ParseSessionKey(in.Key)
	if err != nil {
		return Session{}, err
	}
	if (in.Provider == "") != (in.Model == "") {
		return Session{}, team.Errorf(team.CodeInvalid, "the model of a session needs its provider")
	}
	s, found, err := t.sessionRow(in.Key)
	if err != nil {
		return Session{}, err
	}
	if found {
		if s.State == SessionOpen {
			return s, nil
		}
		if _, err := t.exec(sqlSessionReopen, t.now, s.Key); err != nil {
			return Session{}, err
		}
		return t.openSession(s.Key, t.event(Event{What: team.EventSessionOpened, ID: s.Key, Before: string(s.State), After: string(SessionOpen)}))
	}
	s = Session{Key: in.Key, AgentID: k.Spec, Owner: in.Owner, Member: in.Member, Channel: in.Channel}
	if s.Channel == "" {
		s.Channel = team.ChannelInternal
	}
	if in.Owner != "" {
		if err := t.adoptChild(&s); err != nil {
			return Session{}, err
		}
	}
	if s.Member == "" {
		return Session{}, team.Errorf(team.CodeInvalid, "session %s has no member", in.Key)
	}
	if _, err := object("the routing of a session", in.Routing); err != nil {
		return Session{}, err
	}
	if _, err := t.exec(sqlSessionAdd, s.Key, s.AgentID, s.AgentID, in.Provider, in.Model, in.Deliver, orNull(s.Owner), s.Channel,
		jsonOrNull(in.Routing), in.Label, s.Depth, s.Member, t.now, t.now); err != nil {
		return Session{}, err
	}
	return t.openSession(s.Key, t.event(Event{What: team.EventSessionOpened, ID: s.Key, After: string(SessionOpen),
		Data: json.RawMessage(mustJSON(map[string]any{"owner": s.Owner, "depth": s.Depth, "label": in.Label}))}))
}

// adoptChild gives a child the member of its parent and counts depth and siblings.
func (t *tx) adoptChild(s *Session) error {
	parent, err := t.openSession(s.Owner, nil)
	if err != nil {
		return err
	}
	if s.Member == "" {
		s.Member = parent.Member
	}
	if s.Member != parent.Member {
		return team.Errorf(team.CodeInvalid, "session %s is not of the member of its parent", s.Key)
	}
	s.Depth = parent.Depth + 1
	deepest, err := t.number(SettingSessionDepth, defaultDepth, MaxSessionDepth)
	if err != nil {
		return err
	}
	if s.Depth > deepest {
		return team.Errorf(team.CodeLimit, "session_spawn is not allowed at this depth (current depth: %d, max: %d)", parent.Depth, deepest).WithReason(team.ReasonTooDeep)
	}
	most, err := t.number(SettingChildren, DefaultChildren, MaxChildren)
	if err != nil {
		return err
	}
	n, _, err := value[int](t, sqlSessionOpenKids, parent.Key)
	if err != nil {
		return err
	}
	if n >= most {
		return team.Errorf(team.CodeLimit, "session_spawn has reached max active children for this session (%d/%d)", n, most).WithReason(team.ReasonTooManyChildren)
	}
	return nil
}

func updateSession(t *tx, p SessionPatch) (Session, error) {
	s, err := t.openSession(p.Key, nil)
	if err != nil {
		return s, err
	}
	set := func(to *string, v *string) {
		if v != nil {
			*to = *v
		}
	}
	set(&s.ActiveAgentID, p.AgentID)
	set(&s.ProviderOverride, p.Provider)
	set(&s.ModelOverride, p.Model)
	set(&s.Channel, p.Channel)
	set(&s.Label, p.Label)
	if p.Deliver != nil {
		s.Deliver = *p.Deliver
	}
	if (s.ProviderOverride == "") != (s.ModelOverride == "") {
		return s, team.Errorf(team.CodeInvalid, "the model of a session needs its provider")
	}
	if _, err := t.exec(sqlSessionSet, s.ActiveAgentID, s.ProviderOverride, s.ModelOverride, s.Deliver, s.Channel, s.Label, t.now, s.Key); err != nil {
		return s, err
	}
	s.UpdatedAt = t.now
	return s, t.event(Event{What: team.EventSessionUpdated, ID: s.Key, Data: json.RawMessage(mustJSON(p))})
}

func closeSession(t *tx, a closeArgs) (none, error) {
	if _, found, err := t.sessionRow(a.Key); err != nil || !found {
		if err == nil {
			err = noSession(a.Key)
		}
		return none{}, err
	}
	return none{}, t.closeSession(a.Key, a.Why)
}

func (t *tx) closeSession(key, why string) error {
	if n, err := t.exec(sqlSessionClose, t.now, key); err != nil || n == 0 {
		return err
	}
	jobs, err := t.jobs(sqlJobsOpen, key)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if err := t.cancel(j, why); err != nil {
			return err
		}
	}
	// Behind itself: a closed parent is told of no end of its children.
	kids, err := column[string](t, sqlSessionChildren, key)
	if err != nil {
		return err
	}
	for _, kid := range kids {
		if err := t.closeSession(kid, why); err != nil {
			return err
		}
	}
	return t.event(Event{What: team.EventSessionClosed, ID: key, Before: string(SessionOpen), After: string(SessionClosed),
		Data: json.RawMessage(mustJSON(map[string]string{"reason": why}))})
}

// openSession returns an open session, after the error of what was done before.
func (t *tx) openSession(key string, before error) (Session, error) {
	if before != nil {
		return Session{}, before
	}
	s, found, err := t.sessionRow(key)
	switch {
	case err != nil:
		return s, err
	case !found:
		return s, noSession(key)
	case s.State != SessionOpen:
		return s, team.Errorf(team.CodeConflict, "session %s is closed", key).WithReason(team.ReasonSessionClosed)
	}
	return s, nil
}

func (t *tx) sessionRow(key string) (s Session, found bool, err error) {
	found, err = t.one(sqlSessionGet, func(r *sql.Rows) (err error) {
		s, err = scanSession(r)
		return err
	}, key)
	return s, found, err
}

// number reads a setting that is a number between 1 and most.
func (t *tx) number(name string, otherwise, most int) (int, error) {
	raw, found, err := value[string](t, sqlSettingGet, name)
	if err != nil || !found {
		return otherwise, err
	}
	n, err := strconv.Atoi(strings.Trim(raw, `"`)) // people's settings are texts
	if err != nil {
		return 0, team.Errorf(team.CodeInvalid, "setting %s: %w", name, err)
	}
	return min(max(n, 1), most), nil
}

func scanSession(r *sql.Rows) (Session, error) {
	var s Session
	var routing sql.NullString
	err := r.Scan(&s.Key, &s.AgentID, &s.ActiveAgentID, &s.ProviderOverride, &s.ModelOverride, &s.Deliver, &s.Owner, &s.Channel,
		&routing, &s.Label, &s.Depth, &s.Member, &s.State, &s.LastSeq, &s.CreatedAt, &s.UpdatedAt)
	s.Routing = rawJSON(routing)
	if err != nil {
		return s, fmt.Errorf("scan a session: %w", err)
	}
	return s, nil
}
