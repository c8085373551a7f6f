package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

const jobCols = `id, session, lane, cause, state, rank, attempt, crashes, generation, lease_until, not_before, yielded, hop,
	coalesce(cancel, ''), reason, effective, usage, result, created_at, started_at, ended_at`

const (
	sqlJobGet     = `SELECT ` + jobCols + ` FROM turn_jobs WHERE id = ?`
	sqlJobRunning = `SELECT ` + jobCols + ` FROM turn_jobs WHERE session = ? AND state = 'running'`
	sqlJobQueued  = `SELECT ` + jobCols + ` FROM turn_jobs WHERE session = ? AND state = 'queued' AND input IS NULL ORDER BY rank DESC, id LIMIT 1`
	// A turn that has begun and whose process is gone, or that waits for its budget.
	sqlJobBegun = `SELECT ` + jobCols + ` FROM turn_jobs WHERE session = ? AND state = 'queued' AND attempt > 0 ORDER BY rank DESC, id LIMIT 1`
	sqlJobsOpen = `SELECT ` + jobCols + ` FROM turn_jobs WHERE session = ? AND state IN ('queued', 'running') ORDER BY id`
	// Turns of a session, of all sessions of a member, or of all; the open ones, unordered, by the indexes
	// of their states and without a temporary table, since each agent looks for its own at every change.
	sqlJobList           = `SELECT ` + jobCols + ` FROM turn_jobs`
	sqlJobsOfSession     = `session = ?1`
	sqlJobsOfMember      = `session IN (SELECT session_key FROM sessions WHERE member = ?1)`
	sqlJobsOrder         = ` ORDER BY id`
	sqlQueuedJobs        = sqlJobList + ` INDEXED BY idx_turn_jobs_queued WHERE state = 'queued'`
	sqlRunningJobs       = sqlJobList + ` INDEXED BY idx_turn_jobs_running WHERE state = 'running'`
	sqlOpenJobs          = sqlQueuedJobs + ` UNION ALL ` + sqlRunningJobs
	sqlOpenJobsOfSession = sqlQueuedJobs + ` AND ` + sqlJobsOfSession + ` UNION ALL ` + sqlRunningJobs + ` AND ` + sqlJobsOfSession
	sqlMemberJobs        = `SELECT ` + jobCols + ` FROM (SELECT j.* FROM sessions s CROSS JOIN turn_jobs j INDEXED BY idx_turn_jobs_`
	sqlOpenJobsOfMember  = sqlMemberJobs + `queued ON j.session = s.session_key WHERE s.member = ?1 AND j.state = 'queued') UNION ALL ` +
		sqlMemberJobs + `running ON j.session = s.session_key WHERE s.member = ?1 AND j.state = 'running')`
	sqlJobPut = `INSERT INTO turn_jobs(session, lane, cause, rank, hop, input, not_before, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`
	// A session's first job in line is the one of the highest rank, then the oldest. It
	// is due, nothing of the session runs, and its lane has a place left. It works with
	// what the one before it worked with, until its process notes something else.
	sqlJobClaim = `UPDATE turn_jobs SET state = 'running', attempt = attempt + 1, generation = ?2, lease_until = ?3, started_at = iif(started_at > 0, started_at, ?4), yielded = 0, reason = '',
		start_seq = (SELECT last_seq FROM sessions WHERE session_key = turn_jobs.session),
		effective = coalesce(effective, (SELECT json_remove(p.effective, '$.head') FROM turn_jobs p WHERE p.session = turn_jobs.session AND p.id < turn_jobs.id AND p.effective IS NOT NULL ORDER BY p.id DESC LIMIT 1))
		WHERE id = (SELECT j.id FROM sessions s JOIN turn_jobs j ON j.id = (
				SELECT q.id FROM turn_jobs q WHERE q.session = s.session_key AND q.state = 'queued' AND q.not_before <= ?4 ORDER BY q.rank DESC, q.id LIMIT 1)
			WHERE s.member = ?1 AND s.state = 'open'
			AND NOT EXISTS (SELECT 1 FROM turn_jobs r WHERE r.session = s.session_key AND r.state = 'running')
			AND (SELECT count(*) FROM turn_jobs r WHERE r.lane = j.lane AND r.state = 'running' AND r.yielded = 0) <
				coalesce((SELECT max(1, CAST(trim(value, '"') AS INTEGER)) FROM settings WHERE name = '` + SettingLane + `' || j.lane), (SELECT value FROM json_each(?5) WHERE key = j.lane), 1)
			ORDER BY j.rank DESC, j.id LIMIT 1)
		RETURNING ` + jobCols
	sqlJobResume = `UPDATE turn_jobs SET yielded = 0, reason = '', lease_until = ?2 WHERE id = ?1 AND yielded = 1
		AND (SELECT count(*) FROM turn_jobs r WHERE r.lane = turn_jobs.lane AND r.state = 'running' AND r.yielded = 0) <
			coalesce((SELECT max(1, CAST(trim(value, '"') AS INTEGER)) FROM settings WHERE name = '` + SettingLane + `' || lane), (SELECT value FROM json_each(?3) WHERE key = lane), 1)`
	sqlTurnUsage = `SELECT s.member, sum(coalesce(j.usage ->> '$.inputTokens', 0)), sum(coalesce(j.usage ->> '$.outputTokens', 0)),
		sum(coalesce(j.usage ->> '$.cachedTokens', 0)), sum(coalesce(j.usage ->> '$.cacheWriteTokens', 0)), sum(coalesce(j.usage ->> '$.reasoningTokens', 0)),
		sum(coalesce(j.usage ->> '$.costUsd', 0.0)), min(coalesce(j.usage ->> '$.costKnown', 0)), sum(j.ended_at > 0), sum(coalesce(j.usage ->> '$.unknown', 0))
		FROM turn_jobs j JOIN sessions s ON s.session_key = j.session WHERE j.attempt > 0 GROUP BY s.member`
	sqlJobNewest = `SELECT ` + jobCols + ` FROM turn_jobs WHERE session = ? ORDER BY id DESC LIMIT 1`
	sqlJobInput  = `SELECT coalesce(input, '') FROM turn_jobs WHERE id = ?`
	sqlJobYield  = `UPDATE turn_jobs SET yielded = 1, reason = ? WHERE id = ?`
	sqlJobEnd    = `UPDATE turn_jobs SET state = ?, reason = ?, usage = ?, result = ?, ended_at = ?, lease_until = 0, yielded = 0 WHERE id = ?`
	sqlJobBack   = `UPDATE turn_jobs SET state = 'queued', reason = ?, usage = ?, not_before = ?, lease_until = 0, yielded = 0, generation = '' WHERE id = ?`
	sqlJobHop    = `UPDATE turn_jobs SET hop = max(hop, ?) WHERE id = ?`
	sqlWakes     = `SELECT count(*) FROM turn_jobs WHERE session = ? AND state = 'queued' AND cause = 'wake' AND attempt = 0`
	sqlJobCancel = `UPDATE turn_jobs SET cancel = ? WHERE id = ?`
	sqlJobNote   = `UPDATE turn_jobs SET effective = coalesce(?, effective), usage = coalesce(?, usage) WHERE id = ?`
	sqlJobLease  = `UPDATE turn_jobs SET lease_until = ? WHERE state = 'running' AND generation = ? AND session IN (SELECT session_key FROM sessions WHERE member = ?)`
)

// ClaimTurnIn claims the next turn of a member's sessions.
type ClaimTurnIn struct {
	Member     string        `json:"member"` // session key of the member whose process claims
	Generation string        `json:"generation"`
	Lease      time.Duration `json:"lease,omitempty"`   // default Lease
	Working    bool          `json:"working,omitempty"` // the member is working from the claim on
}

// ClaimedTurn is a turn that begins, with what its beginning added to the transcript.
type ClaimedTurn struct {
	Job       TurnJob     `json:"job"`
	Entries   []Entry     `json:"entries,omitempty"`
	Announces []Announced `json:"announces,omitempty"` // what this turn alone is shown
}

// TurnNote is what becomes known of a turn while it runs.
type TurnNote struct {
	Ref       TurnRef         `json:"ref"`
	Effective json.RawMessage `json:"effective,omitempty"` // spec, provider, model, tools
	Usage     json.RawMessage `json:"usage,omitempty"`
}

// JobFilter narrows TurnJobs. The zero value is every turn.
type JobFilter struct {
	Session string // alone, or with Open
	Member  string // session key of a member: the turns of all its sessions
	Open    bool   // queued and running ones only
}

// ClaimTurn starts the next turn of the member's open sessions: one that is due, in a
// session of which no other runs, in a lane with a place left. Turns that a new message
// put first come first; every other one begins with the session's backlog. Without such
// a turn it returns nil and no error.
func (l *Ledger) ClaimTurn(ctx context.Context, in ClaimTurnIn) (*ClaimedTurn, error) {
	return write[*ClaimedTurn](ctx, l, opTurnClaim, in)
}

// NewTurn is a turn that begins with a text, at a time.
type NewTurn struct {
	Session   string         `json:"session"`
	Input     string         `json:"input"` // user entry with which it begins
	Cause     team.TurnCause `json:"cause,omitempty"`
	Lane      team.Lane      `json:"lane,omitempty"` // default that of the session's kind
	NotBefore int64          `json:"notBefore,omitempty"`
	Hop       int            `json:"hop,omitempty"`
}

// QueueTurn queues a turn of its own, beside what the session has: a wake at a time.
// Errors: CodeNotFound session_not_found; CodeConflict session_closed; CodeLimit hop_limit,
// too_many_wakes.
func (l *Ledger) QueueTurn(ctx context.Context, n NewTurn) (job int64, err error) {
	return write[int64](ctx, l, opTurnQueue, n)
}

// NoteTurn records what became known of a running turn. Errors of every fenced write:
// CodeNotFound turn_not_found, CodeConflict stale_turn.
func (l *Ledger) NoteTurn(ctx context.Context, n TurnNote) error {
	_, err := write[none](ctx, l, opTurnNote, n)
	return err
}

// YieldTurn leaves the turn's place in its lane to others while it waits; why is shown.
func (l *Ledger) YieldTurn(ctx context.Context, ref TurnRef, why string) error {
	_, err := write[none](ctx, l, opTurnYield, turnWhy{Ref: ref, Why: why})
	return err
}

// ResumeTurn takes a place in the lane again; ok is false while there is none.
func (l *Ledger) ResumeTurn(ctx context.Context, ref TurnRef) (ok bool, err error) {
	return write[bool](ctx, l, opTurnResume, turnWhy{Ref: ref})
}

// CancelTurn ends a queued turn, and marks a running one so that its process ends it; an
// ended one is unchanged. Errors: CodeNotFound turn_not_found.
func (l *Ledger) CancelTurn(ctx context.Context, job int64, why string) error {
	_, err := write[none](ctx, l, opTurnCancel, turnWhy{Ref: TurnRef{Job: job}, Why: why})
	return err
}

// RenewTurns renews the leases of the turns that a member's process runs.
func (l *Ledger) RenewTurns(ctx context.Context, member, generation string, lease time.Duration) (int64, error) {
	return write[int64](ctx, l, opTurnRenew, ClaimTurnIn{Member: member, Generation: generation, Lease: lease})
}

// TurnJobs returns turns in the order in which they were queued.
func (l *Ledger) TurnJobs(ctx context.Context, f JobFilter) ([]TurnJob, error) {
	q, args := f.query()
	list, err := read(ctx, l.db, "read turns", scanJob, q, args...)
	if f.Open {
		slices.SortFunc(list, func(a, b TurnJob) int { return cmp.Compare(a.ID, b.ID) })
	}
	return list, err
}

func (f JobFilter) query() (q string, args []any) {
	switch {
	case f.Session != "" && f.Open:
		return sqlOpenJobsOfSession, []any{f.Session}
	case f.Session != "":
		return sqlJobList + " WHERE " + sqlJobsOfSession + sqlJobsOrder, []any{f.Session}
	case f.Member != "" && f.Open:
		return sqlOpenJobsOfMember, []any{f.Member}
	case f.Member != "":
		return sqlJobList + " WHERE " + sqlJobsOfMember + sqlJobsOrder, []any{f.Member}
	case f.Open:
		return sqlOpenJobs, nil
	}
	return sqlJobList + sqlJobsOrder, nil
}

// NewestTurn returns the newest turn of a session; ok is false without one.
func (l *Ledger) NewestTurn(ctx context.Context, session string) (j TurnJob, ok bool, err error) {
	list, err := read(ctx, l.db, "read the newest turn of "+session, scanJob, sqlJobNewest, session)
	if err != nil || len(list) == 0 {
		return j, false, err
	}
	return list[0], true, nil
}

// TurnJob returns one turn; CodeNotFound (turn_not_found) without it.
func (l *Ledger) TurnJob(ctx context.Context, id int64) (TurnJob, error) {
	list, err := read(ctx, l.db, "read turn "+itoa(id), scanJob, sqlJobGet, id)
	if err == nil && len(list) == 0 {
		err = noTurn(id)
	}
	if err != nil {
		return TurnJob{}, err
	}
	return list[0], nil
}

type turnWhy struct {
	Ref TurnRef `json:"ref"`
	Why string  `json:"why,omitempty"`
}

func noTurn(id int64) error {
	return team.Errorf(team.CodeNotFound, "no turn %d", id).WithReason(team.ReasonTurnNotFound)
}

// widths are the lanes' own widths, for a statement.
func widths() string {
	w := map[team.Lane]int{}
	for _, l := range team.Lanes() {
		w[l] = l.Width()
	}
	return mustJSON(w)
}

func claimTurn(t *tx, in ClaimTurnIn) (*ClaimedTurn, error) {
	if in.Member == "" || in.Generation == "" {
		return nil, team.Errorf(team.CodeInvalid, "a turn is claimed for a member and a generation")
	}
	if in.Lease <= 0 {
		in.Lease = Lease
	}
	list, err := t.jobs(sqlJobClaim, in.Member, in.Generation, t.now+in.Lease.Milliseconds(), t.now, widths())
	if err != nil || len(list) == 0 {
		return nil, err
	}
	t.wrote = true
	out := &ClaimedTurn{Job: list[0]}
	j := out.Job
	if err := t.jobEvent(team.EventTurnStarted, j, team.TurnQueued, ""); err != nil {
		return nil, err
	}
	if out.Entries, err = t.begin(&out.Job); err != nil {
		return nil, err
	}
	if out.Announces, err = t.announces(j); err != nil || !in.Working {
		return out, err
	}
	working := team.Working
	if _, err = updateMember(t, MemberPatch{SessionKey: in.Member, Activity: &working}); team.IsCode(err, team.CodeNotFound) {
		err = nil // the sessions of a member that is on no roster
	}
	return out, err
}

// begin adds to the transcript what a turn begins with.
func (t *tx) begin(j *TurnJob) ([]Entry, error) {
	var out []Entry
	input, _, err := value[string](t, sqlJobInput, j.ID)
	if err != nil {
		return nil, err
	}
	if input != "" {
		e, _, err := t.entry(j.Session, NewEntry{Kind: EntryUser, Content: input, Source: "turn:" + itoa(j.ID)}, j.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	if j.First || j.Attempt > 1 { // what came amid a turn is not part of it
		return out, nil
	}
	e, some, err := t.drain(j)
	if some {
		out = append(out, e)
	}
	return out, err
}

func queueTurn(t *tx, n NewTurn) (int64, error) {
	s, err := t.openSession(n.Session, nil)
	if err == nil && n.Input == "" {
		err = team.Errorf(team.CodeInvalid, "a turn needs a text to begin with")
	}
	if err == nil {
		err = t.hop(s, n.Hop)
	}
	if err != nil {
		return 0, err
	}
	if n.Cause == "" {
		n.Cause = team.CauseWake
	}
	if n.Cause == team.CauseWake {
		waits, _, err := value[int](t, sqlWakes, n.Session)
		if err != nil {
			return 0, err
		}
		if waits >= MaxWakes {
			return 0, team.Errorf(team.CodeLimit, "session %s waits for %d wakes already", n.Session, waits).WithReason(team.ReasonTooManyWakes)
		}
	}
	if n.Lane == "" {
		n.Lane = laneOf(n.Session)
	}
	return t.queue(TurnJob{Session: n.Session, Lane: n.Lane, Cause: n.Cause, NotBefore: n.NotBefore, Hop: n.Hop}, n.Input)
}

func noteTurn(t *tx, n TurnNote) (none, error) {
	j, err := t.fencedTurn(n.Ref)
	if err != nil {
		return none{}, err
	}
	for what, raw := range map[string]json.RawMessage{"effective": n.Effective, "usage": n.Usage} {
		if _, err := object(what, raw); err != nil {
			return none{}, err
		}
	}
	_, err = t.exec(sqlJobNote, jsonOrNull(n.Effective), jsonOrNull(n.Usage), j.ID)
	return none{}, err
}

func yieldTurn(t *tx, a turnWhy) (none, error) {
	j, err := t.fencedTurn(a.Ref)
	if err != nil || j.Yielded {
		return none{}, err
	}
	if err := t.freed(j.Lane); err != nil {
		return none{}, err
	}
	if _, err := t.exec(sqlJobYield, a.Why, j.ID); err != nil {
		return none{}, err
	}
	return none{}, t.jobEvent(team.EventTurnYielded, j, j.State, a.Why)
}

func resumeTurn(t *tx, a turnWhy) (bool, error) {
	j, err := t.fencedTurn(a.Ref)
	if err != nil || !j.Yielded {
		return err == nil, err
	}
	n, err := t.exec(sqlJobResume, j.ID, t.now+Lease.Milliseconds(), widths())
	if err != nil || n == 0 {
		return false, err
	}
	return true, t.jobEvent(team.EventTurnResumed, j, j.State, "")
}

func renewTurns(t *tx, in ClaimTurnIn) (int64, error) {
	if in.Lease <= 0 {
		in.Lease = Lease
	}
	return t.exec(sqlJobLease, t.now+in.Lease.Milliseconds(), in.Generation, in.Member)
}

func cancelTurn(t *tx, a turnWhy) (none, error) {
	list, err := t.jobs(sqlJobGet, a.Ref.Job)
	if err == nil && len(list) == 0 {
		err = noTurn(a.Ref.Job)
	}
	if err != nil {
		return none{}, err
	}
	return none{}, t.cancel(list[0], a.Why)
}

// cancel ends a queued turn and marks a running one. What a queued one would have taken
// from the backlog is taken by another.
func (t *tx) cancel(j TurnJob, why string) error {
	switch {
	case j.State == team.TurnQueued:
		if _, err := t.exec(sqlJobEnd, team.TurnCancelled, why, jsonOrNull(j.Usage), jsonOrNull(j.Result), t.now, j.ID); err != nil {
			return err
		}
		was := j.State
		j.State = team.TurnCancelled
		j.Cancel, j.Reason = why, why
		if err := t.jobEvent(team.EventTurnCancelled, j, was, why); err != nil {
			return err
		}
		if _, err := t.announce(j); err != nil {
			return err
		}
		_, err := t.follow(j.Session)
		return err
	case j.State == team.TurnRunning && j.Cancel == "":
		_, err := t.exec(sqlJobCancel, why, j.ID)
		return err
	}
	return nil
}

// queue adds a turn.
func (t *tx) queue(j TurnJob, input string) (int64, error) {
	id, _, err := value[int64](t, sqlJobPut, j.Session, j.Lane, j.Cause, j.First, j.Hop, orNull(input), j.NotBefore, t.now)
	if err != nil {
		return 0, err
	}
	t.wrote = true
	if err := t.concernOf(j.Session); err != nil {
		return 0, err
	}
	j.ID, j.State = id, team.TurnQueued
	return id, t.jobEvent(team.EventTurnQueued, j, "", "")
}

// fencedTurn returns the turn if this start of it still runs.
func (t *tx) fencedTurn(ref TurnRef) (TurnJob, error) {
	list, err := t.jobs(sqlJobGet, ref.Job)
	if err == nil && len(list) == 0 {
		err = noTurn(ref.Job)
	}
	if err != nil {
		return TurnJob{}, err
	}
	j := list[0]
	if j.State != team.TurnRunning || j.Attempt != ref.Attempt || j.Generation != ref.Generation {
		return j, team.Errorf(team.CodeConflict, "turn %d is %s, attempt %d: attempt %d is over", j.ID, j.State, j.Attempt, ref.Attempt).WithReason(team.ReasonStaleTurn)
	}
	return j, nil
}

func (t *tx) jobs(q string, args ...any) (out []TurnJob, err error) {
	err = t.each(q, func(r *sql.Rows) error {
		j, err := scanJob(r)
		out = append(out, j)
		return err
	}, args...)
	return out, err
}

// jobEvent records a change of a turn.
func (t *tx) jobEvent(what string, j TurnJob, before team.TurnState, why string) error {
	data := map[string]any{"turn": j.ID, "lane": j.Lane, "cause": j.Cause}
	if j.Attempt > 0 {
		data["attempt"] = j.Attempt
	}
	if j.Hop > 0 {
		data["hop"] = j.Hop
	}
	if why = strings.TrimSpace(why); why != "" {
		data["reason"] = why
	}
	return t.event(Event{What: what, ID: j.Session, Before: string(before), After: string(j.State), Data: json.RawMessage(mustJSON(data))})
}

func scanJob(r *sql.Rows) (TurnJob, error) {
	var j TurnJob
	var effective, usage, result sql.NullString
	err := r.Scan(&j.ID, &j.Session, &j.Lane, &j.Cause, &j.State, &j.First, &j.Attempt, &j.Crashes, &j.Generation, &j.LeaseUntil, &j.NotBefore,
		&j.Yielded, &j.Hop, &j.Cancel, &j.Reason, &effective, &usage, &result, &j.CreatedAt, &j.StartedAt, &j.EndedAt)
	j.Effective, j.Usage, j.Result = rawJSON(effective), rawJSON(usage), rawJSON(result)
	return j, err
}

// TurnUsage is what the turns of each member's sessions have used, by the session key of
// the member. What a request used that ended before its answer is unknown, except for what
// its provider had reported.
func (l *Ledger) TurnUsage(ctx context.Context) (map[string]team.Usage, error) {
	type row struct {
		member string
		usage  team.Usage
	}
	list, err := read(ctx, l.db, "sum what turns have used", func(r *sql.Rows) (v row, err error) {
		u := &v.usage
		return v, r.Scan(&v.member, &u.InputTokens, &u.OutputTokens, &u.CachedTokens, &u.CacheWriteTokens, &u.ReasoningTokens, &u.CostUSD, &u.CostKnown, &u.Turns, &u.Unknown)
	}, sqlTurnUsage)
	out := make(map[string]team.Usage, len(list))
	for _, v := range list {
		out[v.member] = v.usage
	}
	return out, err
}
