package ledger

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

// Results of calls that get none from their tool.
const (
	ResultLost    = "The process that ran this call was killed before its end was recorded. It may have happened in whole or in part: check before you repeat it."
	ResultSkipped = "Skipped: a new message came first."
	ResultEnded   = "Skipped: the turn ended first."
)

const (
	sqlJobProgress = `UPDATE turn_jobs SET state = ?, reason = ?, crashes = ?, lease_until = 0, yielded = 0, generation = '', ended_at = ? WHERE id = ?`
	sqlJobsOf      = `SELECT ` + jobCols + ` FROM turn_jobs WHERE state = 'running' AND generation <> ?2
		AND session IN (SELECT session_key FROM sessions WHERE member = ?1) ORDER BY id`
	// As with tasks, a supervised process that is alive keeps its turns: after a suspension, or when
	// the clock is set, their leases have expired before it could renew them. That of a later
	// generation has recovered the turns that it found.
	sqlJobsExpired = `SELECT ` + jobCols + ` FROM turn_jobs WHERE state = 'running' AND lease_until BETWEEN 1 AND ?
		AND NOT EXISTS (SELECT 1 FROM sessions s JOIN members m ON m.sessionKey = s.member
			WHERE s.session_key = turn_jobs.session AND m.generation = turn_jobs.generation AND ` + supervisedAlive + `)
		ORDER BY id`
	sqlJobAdvanced  = `SELECT s.last_seq > j.start_seq FROM turn_jobs j JOIN sessions s ON s.session_key = j.session WHERE j.id = ?`
	sqlQueuedAny    = `SELECT EXISTS (SELECT 1 FROM turn_jobs WHERE session = ? AND state = 'queued' AND rank = 0 AND (input IS NULL OR not_before <= ?))`
	sqlBacklogFacts = `SELECT count(*), coalesce(sum(kind <> 'finish'), 0), coalesce(max(hop), 0) FROM session_backlog WHERE session = ? AND entry IS NULL`
)

// maxCrashes is how often in a row a turn's process may end without a new entry.
const maxCrashes = 3

// TurnEnd ends one start of a turn. With State queued the turn waits until NotBefore and
// goes on then; any other state is its end.
type TurnEnd struct {
	Ref       TurnRef         `json:"ref"`
	State     team.TurnState  `json:"state"`
	Reason    string          `json:"reason,omitempty"`
	NotBefore int64           `json:"notBefore,omitempty"`
	Results   []CallResult    `json:"results,omitempty"` // of calls that are open; those of others say that the turn ended
	Entries   []NewEntry      `json:"entries,omitempty"`
	Usage     json.RawMessage `json:"usage,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"` // a team.TurnReport
	Claim     *ClaimTurnIn    `json:"claim,omitempty"`  // claims the next turn in the same transaction; not with State queued
}

// EndedTurn is what followed from an end.
type EndedTurn struct {
	Next int64        `json:"next,omitempty"` // a turn queued for what waits
	Turn *ClaimedTurn `json:"turn,omitempty"` // what Claim has claimed
	// Dropped says why the parent of a child was not told; "" if it was.
	Dropped string `json:"dropped,omitempty"`
}

// TurnSteer ends a turn for new input.
type TurnSteer struct {
	Ref     TurnRef         `json:"ref"`
	Results []CallResult    `json:"results,omitempty"` // of calls that ended; those of others say that they were skipped
	Resume  BacklogItem     `json:"resume"`            // how the turn goes on later; a former one with its Source is replaced
	Inputs  []Input         `json:"inputs"`
	Usage   json.RawMessage `json:"usage,omitempty"`
	Claim   *ClaimTurnIn    `json:"claim,omitempty"` // claims the next turn in the same transaction
}

// SteeredTurn is what followed from a steer.
type SteeredTurn struct {
	Next int64        `json:"next"`           // the turn of the new input
	Turn *ClaimedTurn `json:"turn,omitempty"` // what Claim has claimed
}

// EndTurn ends a turn, notifies the parent session if there is one, and queues a turn for the
// backlog, in one transaction.
func (l *Ledger) EndTurn(ctx context.Context, e TurnEnd) (EndedTurn, error) {
	return write[EndedTurn](ctx, l, opTurnEnd, e)
}

// SteerTurn ends a turn for new input: the turn's remainder enters the backlog, the
// input the transcript, and the next turn of the session is that of the input. Errors,
// beside those of fenced writes: CodeLimit backlog_full, with nothing changed.
func (l *Ledger) SteerTurn(ctx context.Context, s TurnSteer) (SteeredTurn, error) {
	return write[SteeredTurn](ctx, l, opTurnSteer, s)
}

// RecoverTurns queues the running turns of a member's other generations again and
// returns them. A call that was begun gets the result ResultLost, one that only reads is
// asked for again. A turn whose process ended three times in a row without a new entry
// has failed instead.
func (l *Ledger) RecoverTurns(ctx context.Context, member, generation string) ([]TurnJob, error) {
	return write[[]TurnJob](ctx, l, opTurnRecover, ClaimTurnIn{Member: member, Generation: generation})
}

func endTurn(t *tx, e TurnEnd) (out EndedTurn, err error) {
	j, err := t.fencedTurn(e.Ref)
	if err != nil {
		return out, err
	}
	if !j.State.CanMove(e.State) || e.State == team.TurnSteered {
		return out, team.Errorf(team.CodeInvalid, "a turn cannot go from %s to %s", j.State, e.State)
	}
	for what, raw := range map[string]json.RawMessage{"usage": e.Usage, "result": e.Result} {
		if _, err := object(what, raw); err != nil {
			return out, err
		}
	}
	if len(e.Usage) == 0 {
		e.Usage = j.Usage
	}
	if _, err := t.endCalls(j, e.Results); err != nil {
		return out, err
	}
	if e.State == team.TurnQueued {
		if _, err := t.entries(j.Session, e.Entries, j.ID); err != nil {
			return out, err
		}
		if _, err := t.exec(sqlJobBack, e.Reason, jsonOrNull(e.Usage), e.NotBefore, j.ID); err != nil {
			return out, err
		}
		if err := t.freed(j.Lane); err != nil {
			return out, err
		}
		was := j.State
		j.State = e.State
		return out, t.jobEvent(team.EventTurnWaits, j, was, e.Reason)
	}
	if err := t.closeCalls(j, ResultEnded); err != nil {
		return out, err
	}
	if _, err := t.entries(j.Session, e.Entries, j.ID); err != nil {
		return out, err
	}
	if err := t.finish(j, e.State, e.Reason, e.Usage, e.Result); err != nil {
		return out, err
	}
	j.State, j.Reason, j.Usage, j.Result = e.State, e.Reason, e.Usage, e.Result
	if out.Dropped, err = t.announce(j); err != nil {
		return out, err
	}
	if out.Next, err = t.follow(j.Session); err == nil && e.Claim != nil {
		out.Turn, err = claimTurn(t, *e.Claim)
	}
	return out, err
}

// finish writes the end of a turn.
func (t *tx) finish(j TurnJob, state team.TurnState, why string, usage, result json.RawMessage) error {
	if _, err := t.exec(sqlJobEnd, state, why, jsonOrNull(usage), jsonOrNull(result), t.now, j.ID); err != nil {
		return err
	}
	if err := t.freed(j.Lane); err != nil {
		return err
	}
	was := j.State
	j.State = state
	return t.jobEvent(team.TurnEvents+string(state), j, was, why)
}

// closeCalls gives every open call of the session a result: lost where it was begun and
// may have changed something.
func (t *tx) closeCalls(j TurnJob, text string) error {
	open, err := t.calls(sqlCallsOpen, j.Session)
	if err != nil {
		return err
	}
	for _, c := range open {
		state, says := CallEnded, text
		if c.State == CallBegun && !c.ReadOnly {
			state, says = CallLost, ResultLost
		}
		if _, err := t.endCall(j, c, state, NewEntry{Content: says}); err != nil {
			return err
		}
	}
	return nil
}

// follow queues a turn for the backlog of a session, unless one waits that takes it.
func (t *tx) follow(session string) (int64, error) {
	s, found, err := t.sessionRow(session)
	if err != nil || !found || s.State != SessionOpen {
		return 0, err
	}
	if queued, _, err := value[bool](t, sqlQueuedAny, session, t.now); err != nil || queued {
		return 0, err
	}
	var n, other, hop int
	if _, err := t.one(sqlBacklogFacts, func(r *sql.Rows) error { return r.Scan(&n, &other, &hop) }, session); err != nil {
		return 0, err
	}
	late, err := column[string](t, sqlAnnounceWaits, session)
	if err != nil || n+len(late) == 0 {
		return 0, err
	}
	j := TurnJob{Session: session, Lane: laneOf(session), Cause: team.CauseBacklog, Hop: hop}
	if other == 0 {
		j.Lane, j.Cause = team.LaneAnnounce, team.CauseAnnounce
	}
	return t.queue(j, "")
}

func steerTurn(t *tx, s TurnSteer) (out SteeredTurn, err error) {
	j, err := t.fencedTurn(s.Ref)
	if err != nil {
		return out, err
	}
	if len(s.Inputs) == 0 {
		return out, team.Errorf(team.CodeInvalid, "turn %d cannot be steered by nothing", j.ID)
	}
	if _, err := t.endCalls(j, s.Results); err != nil {
		return out, err
	}
	if err := t.closeCalls(j, ResultSkipped); err != nil {
		return out, err
	}
	if len(s.Usage) == 0 {
		s.Usage = j.Usage
	}
	if err := t.finish(j, team.TurnSteered, "a new message", s.Usage, nil); err != nil {
		return out, err
	}
	s.Resume.Kind, s.Resume.Hop = BacklogResume, j.Hop
	if s.Resume.Source != "" {
		if _, err := t.exec(sqlBacklogOut, j.Session, s.Resume.Source); err != nil {
			return out, err
		}
	}
	if err := t.backlog(j.Session, s.Resume); err != nil {
		return out, err
	}
	if _, err := t.inputs(j.Session, s.Inputs, 0); err != nil {
		return out, err
	}
	out.Next, err = t.queue(TurnJob{Session: j.Session, Lane: laneOf(j.Session), Cause: team.CauseMessage, First: true}, "")
	if err == nil && s.Claim != nil {
		out.Turn, err = claimTurn(t, *s.Claim)
	}
	return out, err
}

func recoverTurns(t *tx, in ClaimTurnIn) ([]TurnJob, error) {
	list, err := t.jobs(sqlJobsOf, in.Member, in.Generation)
	if err != nil {
		return nil, err
	}
	return t.recoverAll(list)
}

func (t *tx) recoverAll(list []TurnJob) ([]TurnJob, error) {
	out := make([]TurnJob, 0, len(list))
	for _, j := range list {
		j, err := t.recoverTurn(j)
		if err != nil {
			return nil, err
		}
		out = append(out, j)
	}
	return out, nil
}

// recoverTurn queues a turn again whose process has ended.
func (t *tx) recoverTurn(j TurnJob) (TurnJob, error) {
	advanced, _, err := value[bool](t, sqlJobAdvanced, j.ID)
	if err != nil {
		return j, err
	}
	j.Crashes++
	if advanced {
		j.Crashes = 1
	}
	open, err := t.calls(sqlCallsOpen, j.Session)
	if err != nil {
		return j, err
	}
	for _, c := range open {
		if c.State != CallBegun || c.ReadOnly {
			continue
		}
		if _, err := t.endCall(j, c, CallLost, NewEntry{Content: ResultLost}); err != nil {
			return j, err
		}
	}
	if len(open) == 0 { // it was asking its model, or about to
		if err := t.unknownUsage(&j); err != nil {
			return j, err
		}
	}
	if j.Cancel != "" {
		return j, t.giveUp(&j, team.TurnCancelled, j.Cancel)
	}
	if j.Crashes >= maxCrashes {
		return j, t.giveUp(&j, team.TurnFailed, team.TurnCrashes)
	}
	if _, err := t.exec(sqlJobProgress, team.TurnQueued, "its process ended", j.Crashes, 0, j.ID); err != nil {
		return j, err
	}
	was := j.State
	j.State = team.TurnQueued
	return j, t.jobEvent(team.EventTurnRecovered, j, was, "its process ended")
}

// unknownUsage records that a request of a turn is not counted in its usage: the process was killed
// before the answer.
func (t *tx) unknownUsage(j *TurnJob) error {
	var u team.Usage
	if len(j.Usage) > 0 {
		if err := json.Unmarshal(j.Usage, &u); err != nil {
			return team.Errorf(team.CodeInternal, "usage of turn %d: %w", j.ID, err)
		}
	}
	u.Unknown++
	u.CostKnown = false
	j.Usage = json.RawMessage(mustJSON(u))
	_, err := t.exec(sqlJobNote, nil, jsonOrNull(j.Usage), j.ID)
	return err
}

// giveUp ends a turn that nobody runs.
func (t *tx) giveUp(j *TurnJob, state team.TurnState, why string) error {
	if err := t.closeCalls(*j, ResultEnded); err != nil {
		return err
	}
	if err := t.finish(*j, state, why, j.Usage, j.Result); err != nil {
		return err
	}
	j.State, j.Reason = state, why
	if _, err := t.announce(*j); err != nil {
		return err
	}
	_, err := t.follow(j.Session)
	return err
}
