package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// SessionInfo is a session as it stands.
type SessionInfo struct {
	Key     string         `json:"session_key"`
	Owner   string         `json:"owner_session_key,omitempty" jsonschema:"Key of its parent."`
	Member  string         `json:"member" jsonschema:"Name of the member whose process runs it."`
	AgentID string         `json:"agent_id" jsonschema:"Its agent spec."`
	Label   string         `json:"label,omitempty"`
	Depth   int            `json:"depth"`
	State   string         `json:"state" jsonschema:"open or closed."`
	Turn    team.TurnState `json:"turn,omitempty" jsonschema:"State of its newest turn, or of the one under way."`
	RunID   int64          `json:"run_id,omitempty" jsonschema:"That turn."`
	Reason  string         `json:"reason,omitempty" jsonschema:"Why that turn waits, or how it ended."`
	Entries int64          `json:"entries"`
	Waiting int            `json:"waiting,omitempty" jsonschema:"What waits for its next turn."`
	Wakes   []int64        `json:"wakes,omitempty" jsonschema:"When it is woken, Unix milliseconds."`
	Updated int64          `json:"updated" jsonschema:"Unix milliseconds."`
}

// Sessions lists sessions, each parent before its children: those of the caller's member,
// and for who leads the team, all. Closed ones are listed where all are wanted.
func (t *Team) Sessions(ctx context.Context, c Caller, all bool) ([]SessionInfo, error) {
	list, err := t.Ledger.Sessions(ctx, ledger.SessionFilter{Closed: all})
	if err != nil {
		return nil, err
	}
	names, err := t.memberNames(ctx)
	if err != nil {
		return nil, err
	}
	everyone := c.Person || granted(c, OpRule) != no
	member := ""
	if own := c.OwnSession(); own != "" && !everyone {
		if s, err := t.Ledger.Session(ctx, own); err == nil {
			member = s.Member
		}
	}
	out := []SessionInfo{}
	for _, s := range byParent(list) {
		if !everyone && (member == "" || s.Member != member) {
			continue
		}
		info := SessionInfo{
			Key: s.Key, Owner: s.Owner, Member: names[s.Member], AgentID: s.ActiveAgentID, Label: s.Label, Depth: s.Depth,
			State: string(s.State), Entries: s.LastSeq, Updated: s.UpdatedAt,
		}
		if err := t.fillTurns(ctx, &info); err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

// fillTurns says what a session does, and what waits for it.
func (t *Team) fillTurns(ctx context.Context, info *SessionInfo) error {
	newest, _, err := t.Ledger.NewestTurn(ctx, info.Key)
	if err != nil {
		return err
	}
	open, err := t.Ledger.TurnJobs(ctx, ledger.JobFilter{Session: info.Key, Open: true})
	if err != nil {
		return err
	}
	for _, j := range open {
		switch {
		case j.State == team.TurnRunning:
			newest = j
		case j.Cause == team.CauseWake && j.Attempt == 0:
			info.Wakes = append(info.Wakes, j.NotBefore)
			if newest.ID == j.ID { // what is to come is not what it does
				newest = ledger.TurnJob{}
			}
		}
	}
	info.RunID, info.Turn, info.Reason = newest.ID, newest.State, newest.Reason
	waits, err := t.Ledger.Backlog(ctx, info.Key)
	info.Waiting = len(waits)
	return err
}

// byParent puts children behind their parents.
func byParent(list []ledger.Session) []ledger.Session {
	kids := map[string][]ledger.Session{}
	here := map[string]bool{}
	for _, s := range list {
		here[s.Key] = true
	}
	for _, s := range list {
		up := s.Owner
		if !here[up] {
			up = ""
		}
		kids[up] = append(kids[up], s)
	}
	out := make([]ledger.Session, 0, len(list))
	var add func(string)
	add = func(up string) {
		for _, s := range kids[up] {
			out = append(out, s)
			add(s.Key)
		}
	}
	add("")
	return out
}

// memberNames are the names of all who were ever on the roster, by session key.
func (t *Team) memberNames(ctx context.Context) (map[string]string, error) {
	all, err := t.Ledger.Members(ctx, true)
	names := make(map[string]string, len(all))
	for _, m := range all {
		names[m.SessionKey] = m.Name
	}
	return names, err
}

// HistoryIn says which part of a conversation to read.
type HistoryIn struct {
	Session string
	Before  int64 // only entries with a smaller number; 0: the newest
	Limit   int   // at most this many; 0: as many as there is room for
}

// History is a part of a conversation, oldest entry first.
type History struct {
	SessionKey string         `json:"session_key"`
	State      string         `json:"state" jsonschema:"open or closed."`
	Entries    []HistoryEntry `json:"entries"`
	Earlier    bool           `json:"earlier" jsonschema:"There are earlier entries: ask again with before."`
}

// HistoryEntry is one entry of a conversation.
type HistoryEntry struct {
	Seq   int64            `json:"seq"`
	Kind  ledger.EntryKind `json:"kind"`
	Text  string           `json:"text"`
	Cut   bool             `json:"cut,omitempty" jsonschema:"The text is longer than this."`
	RunID int64            `json:"run_id,omitempty"`
	At    int64            `json:"at" jsonschema:"Unix milliseconds."`
}

// historyChunk is how many entries are read at once.
const historyChunk = 50

// SessionHistory reads the newest entries of a conversation, or those before one: 100 KB of text
// at most. Errors: CodeNotFound session_not_found, for sessions of others too.
func (t *Team) SessionHistory(ctx context.Context, c Caller, in HistoryIn) (History, error) {
	s, err := t.reach(ctx, c, in.Session)
	if err != nil {
		return History{}, err
	}
	if in.Before < 0 || in.Limit < 0 {
		return History{}, team.Errorf(team.CodeInvalid, "before and limit are not negative").WithReason(team.ReasonInput)
	}
	out := History{SessionKey: s.Key, State: string(s.State), Entries: []HistoryEntry{}}
	last := s.LastSeq
	if in.Before > 0 {
		last = min(last, in.Before-1)
	}
	room := MaxInjection
	for last > 0 && room > 0 && (in.Limit == 0 || len(out.Entries) < in.Limit) {
		from := max(0, last-historyChunk)
		list, err := t.Ledger.Entries(ctx, s.Key, from, int(last-from))
		if err == nil {
			err = t.Whole(ctx, s.Member, list)
		}
		if err != nil {
			return out, err
		}
		if len(list) == 0 {
			break
		}
		for i := len(list) - 1; i >= 0 && room > 0 && (in.Limit == 0 || len(out.Entries) < in.Limit); i-- {
			e := list[i]
			h := HistoryEntry{Seq: e.Seq, Kind: e.Kind, Text: e.Content, RunID: e.Job, At: e.At}
			if len(h.Text) > room {
				if len(out.Entries) > 0 {
					room = 0
					break
				}
				h.Text, h.Cut = cutBytes(h.Text, room), true
			}
			room -= len(h.Text)
			last = e.Seq - 1
			out.Entries = append(out.Entries, h)
		}
	}
	out.Earlier = last > 0
	for i, j := 0, len(out.Entries)-1; i < j; i, j = i+1, j-1 {
		out.Entries[i], out.Entries[j] = out.Entries[j], out.Entries[i]
	}
	return out, nil
}

// cutBytes cuts a text to at most n bytes, between two characters.
func cutBytes(text string, n int) string {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:min(n, len(text))]
}

// OneshotIn is a task for a child that is needed once.
type OneshotIn struct {
	Parent  string // "": the caller's own session
	Agent   string // "": the spec of the parent
	Task    string
	Label   string        // "": the task
	Timeout time.Duration // its turn is cancelled then; 0: none
}

// Oneshot is what came of it.
type Oneshot struct {
	SessionKey string              `json:"session_key" jsonschema:"Its session, which is closed; session_history reads it."`
	RunID      int64               `json:"run_id"`
	Status     team.AnnounceStatus `json:"status" jsonschema:"ok, error, timeout or unknown."`
	Reason     string              `json:"reason,omitempty" jsonschema:"Why it did not end well."`
	Reply      string              `json:"reply" jsonschema:"Its last answer, at most 100 KB of it."`
	Artifacts  []team.Artifact     `json:"artifacts" jsonschema:"Files that its calls have changed, and commits that appeared meanwhile."`
}

// Oneshot spawns a child, gives it a task, waits for the end of its turn, reads its answer
// and closes it. Where the caller is killed meanwhile the child goes on, and its result is
// announced like that of every other.
func (t *Team) Oneshot(ctx context.Context, c Caller, in OneshotIn) (out Oneshot, err error) {
	if in.Timeout < 0 {
		return out, team.Errorf(team.CodeInvalid, "the timeout is negative").WithReason(team.ReasonInput)
	}
	s, err := t.SpawnSession(ctx, c, ChildIn{Parent: in.Parent, Agent: in.Agent, Label: in.Label})
	if err != nil {
		return out, err
	}
	out.SessionKey, out.Artifacts = s.Key, []team.Artifact{}
	sent, err := t.SendSession(ctx, c, InjectIn{Session: s.Key, Message: in.Task})
	if err != nil { // nothing has begun
		return out, errors.Join(err, t.as(c).CloseSession(context.WithoutCancel(ctx), s.Key, "it was told nothing"))
	}
	out.RunID = sent.RunID
	var end ledger.TurnJob
	err = paused(ctx, "", "child "+s.Key, func() (err error) {
		end, err = t.turnEnd(ctx, c, sent.RunID, in.Timeout)
		return err
	})
	if err != nil {
		return out, err
	}
	if err := t.oneshotEnd(ctx, s, end, &out); err != nil {
		return out, err
	}
	return out, t.as(c).CloseSession(ctx, s.Key, "its task has ended")
}

// errTurnEnded ends the wait for it.
var errTurnEnded = errors.New("the turn has ended")

// turnEnd waits for the end of a turn. One that takes too long is cancelled.
func (t *Team) turnEnd(ctx context.Context, c Caller, turn int64, limit time.Duration) (end ledger.TurnJob, err error) {
	watch, done := context.WithCancelCause(ctx)
	defer done(nil)
	if limit > 0 {
		timer := time.AfterFunc(limit, func() {
			if err := t.as(c).CancelTurn(watch, turn, team.TurnTimeout); err != nil {
				done(err)
			}
		})
		defer timer.Stop()
	}
	err = t.OnChange(watch, func() (err error) {
		if end, err = t.Ledger.TurnJob(watch, turn); err == nil && end.State.Ended() {
			err = errTurnEnded
		}
		return err
	})
	if errors.Is(err, errTurnEnded) {
		err = nil
	}
	return end, err
}

// oneshotEnd fills in what came of a turn: what is announced of it, and the whole answer.
func (t *Team) oneshotEnd(ctx context.Context, s ledger.Session, end ledger.TurnJob, out *Oneshot) error {
	out.Status = team.AnnounceStatusOf(end.State, end.Reason, end.Cancel)
	if out.Status != team.AnnouncedOK {
		out.Reason = cmp.Or(end.Cancel, end.Reason)
	}
	told, ok, err := t.Ledger.Announced(ctx, ledger.AnnounceKey(s.Owner, s.Key, end.ID))
	if err != nil {
		return err
	}
	if ok { // a chain that is too long is announced to nobody
		var a team.Announce
		if err := json.Unmarshal(told.Meta, &a); err != nil {
			return fmt.Errorf("read announce %s: %w", told.Key, err)
		}
		out.Artifacts, out.Reply = a.Result.Artifacts, a.Result.Summary
	}
	answer, ok, err := t.Ledger.NewestEntry(ctx, s.Key, ledger.EntryAssistant)
	if err != nil {
		return err
	}
	if !ok || answer.Content == "" {
		return nil
	}
	whole := []ledger.Entry{answer}
	if err := t.Whole(ctx, s.Member, whole); err != nil {
		return err
	}
	out.Reply = cutBytes(whole[0].Content, MaxInjection)
	return nil
}
