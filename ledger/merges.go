package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"github.com/teamctl/teamctl/team"
)

const mergeCols = `id, member, session, branch, tip, target, strategy, gates, options, state, old, new, files, log, why, task, askedBy, askedAt, endedAt`

const (
	sqlMerges     = `SELECT ` + mergeCols + ` FROM merges WHERE 1`
	sqlMergesLeft = sqlMerges + ` AND id IN (SELECT max(id) FROM merges GROUP BY branch, target)
		AND state IN ('conflict', 'red', 'failed') AND task = '' ORDER BY id`
	sqlMergeGet  = `SELECT ` + mergeCols + ` FROM merges WHERE id = ?`
	sqlMergeOpen = `SELECT ` + mergeCols + ` FROM merges WHERE branch = ? AND target = ?
		AND COALESCE(json_extract(options, '$.repo'), '') = ? AND state IN ('queued', 'gating', 'landing')`
	sqlMergePut = `INSERT INTO merges(member, session, branch, tip, target, strategy, gates, options, state, askedBy, askedAt)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?) RETURNING id`
	sqlMergeAgain = `UPDATE merges SET tip = ?, strategy = ?, gates = ?, options = ?, askedBy = ?, askedAt = ? WHERE id = ?`
	sqlMergeSet   = `UPDATE merges SET state = ?, old = ?, new = ?, files = ?, log = ?, why = ?, task = ?, endedAt = ? WHERE id = ?`
)

// MergeState is the state of a merge in the queue.
type MergeState string

// States of a merge. The first three are open: if a merge lane is killed,
// merges in these states are resumed.
const (
	MergeQueued    MergeState = "queued"
	MergeGating    MergeState = "gating"
	MergeLanding   MergeState = "landing" // Old and New are the commits from and to which the target moves
	MergeLanded    MergeState = "landed"
	MergeContained MergeState = "contained" // the target already contained the branch
	MergeConflict  MergeState = "conflict"
	MergeRed       MergeState = "red" // a gate failed
	MergeFailed    MergeState = "failed"
	MergeCanceled  MergeState = "canceled"
)

// Open reports whether the merge has not ended.
func (s MergeState) Open() bool { return s == MergeQueued || s == MergeGating || s == MergeLanding }

// MergeOptions are the options of a merge request.
type MergeOptions struct {
	Repo           string        `json:"repo,omitempty"` // name of the repository; "" for the team's own
	UpdateCheckout bool          `json:"updateCheckout,omitempty"`
	GateTimeout    time.Duration `json:"gateTimeout,omitempty"`
}

// Merge is a request to merge one branch into another.
type Merge struct {
	ID       int64        `json:"id"`
	Member   string       `json:"member"`
	Session  string       `json:"session"`
	Branch   string       `json:"branch"`
	Tip      string       `json:"tip"`    // the requested commit
	Target   string       `json:"target"` // short name of the branch to merge into
	Strategy string       `json:"strategy"`
	Gates    []string     `json:"gates"`
	Options  MergeOptions `json:"options"`
	State    MergeState   `json:"state"`
	Old      string       `json:"old,omitempty"`
	New      string       `json:"new,omitempty"`
	Files    []string     `json:"files,omitempty"` // in conflict
	Log      string       `json:"log,omitempty"`   // path of the gate's output
	Why      string       `json:"why,omitempty"`
	Task     string       `json:"task,omitempty"` // what its owner must do about it
	AskedBy  string       `json:"askedBy"`
	AskedAt  int64        `json:"askedAt"`
	EndedAt  int64        `json:"endedAt,omitempty"`
}

// MergePatch changes the state of merges. With Task, the same transaction
// creates one task per merge and assigns it to TaskOwner, by default the owner
// of the branch, if that member is on the roster; a merge that already has a
// task gets no second one.
type MergePatch struct {
	IDs   []int64    `json:"ids"`
	Tips  []string   `json:"tips,omitempty"` // the commit of each: a merge changes only while its requested commit is still this one
	State MergeState `json:"state"`
	Old   string     `json:"old,omitempty"`
	New   string     `json:"new,omitempty"`
	Files []string   `json:"files,omitempty"`
	Log   string     `json:"log,omitempty"`
	Why   string     `json:"why,omitempty"`
	Task  *NewTask   `json:"task,omitempty"`

	TaskOwner string `json:"taskOwner,omitempty"` // session key
}

// EnqueueMerges adds merges to the queue, in order. A queued merge of the same
// branch into the same target is updated instead; a running one is returned
// unchanged.
func (l *Ledger) EnqueueMerges(ctx context.Context, list []Merge) ([]Merge, error) {
	return write[[]Merge](ctx, l, opMergesAdd, list)
}

// MoveMerges changes the state of merges and returns them. Unchanged are: an
// ended merge, a running one that would be canceled, and one whose requested
// commit has changed.
func (l *Ledger) MoveMerges(ctx context.Context, p MergePatch) ([]Merge, error) {
	return write[[]Merge](ctx, l, opMergesMove, p)
}

// Merges returns the queue, oldest first: only open merges, or with ended also
// the newest limit (0: all) of the others.
func (l *Ledger) Merges(ctx context.Context, ended bool, limit int) ([]Merge, error) {
	q := sqlMerges
	if !ended {
		q += ` AND state IN ('queued', 'gating', 'landing')`
	}
	q, args := limited(q+` ORDER BY id DESC`, nil, limit)
	list, err := read(ctx, l.db, "read the merge queue", scanMerge, q, args...)
	slices.Reverse(list)
	return list, err
}

// MergesLeft returns the newest merge of each branch into a target, oldest first, if it has ended
// without a result and no task was made of it.
func (l *Ledger) MergesLeft(ctx context.Context) ([]Merge, error) {
	return read(ctx, l.db, "read the merges that are left", scanMerge, sqlMergesLeft)
}

func enqueueMerges(t *tx, list []Merge) ([]Merge, error) {
	out := make([]Merge, 0, len(list))
	for _, m := range list {
		if m.Branch == "" || m.Target == "" || m.Tip == "" || m.Branch == m.Target {
			return nil, team.Errorf(team.CodeInvalid, "cannot merge %q into %q", m.Branch, m.Target)
		}
		gates, options := mustJSON(append([]string{}, m.Gates...)), mustJSON(m.Options)
		var open Merge
		found, err := t.one(sqlMergeOpen, func(r *sql.Rows) (err error) {
			open, err = scanMerge(r)
			return err
		}, m.Branch, m.Target, m.Options.Repo)
		if err != nil {
			return nil, err
		}
		id := open.ID
		switch {
		case found && open.State != MergeQueued:
			out = append(out, open)
			continue
		case found:
			_, err = t.exec(sqlMergeAgain, m.Tip, m.Strategy, gates, options, t.who, t.now, id)
		default:
			id, _, err = value[int64](t, sqlMergePut, m.Member, m.Session, m.Branch, m.Tip, m.Target, m.Strategy, gates, options, t.who, t.now)
			t.wrote = true
		}
		if err != nil {
			return nil, err
		}
		row, err := t.merge(id)
		if err != nil {
			return nil, err
		}
		out = append(out, row)
		if err := t.event(Event{What: team.EventMergeQueued, ID: m.Branch, After: string(MergeQueued)}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func moveMerges(t *tx, p MergePatch) ([]Merge, error) {
	out := make([]Merge, 0, len(p.IDs))
	for i, id := range p.IDs {
		m, err := t.merge(id)
		if err != nil {
			return nil, err
		}
		late := p.State == MergeCanceled && m.State != MergeQueued
		if !m.State.Open() || late || len(p.Tips) > i && p.Tips[i] != m.Tip {
			out = append(out, m)
			continue
		}
		before := m.State
		m.State, m.Old, m.New, m.Files, m.Why = p.State, p.Old, p.New, p.Files, p.Why
		if p.Log != "" {
			m.Log = p.Log
		}
		if !m.State.Open() {
			m.EndedAt = t.now
		}
		if p.Task != nil && m.Task == "" {
			if m.Task, err = t.taskFor(orDefault(p.TaskOwner, m.Session), *p.Task); err != nil {
				return nil, err
			}
		}
		if _, err := t.exec(sqlMergeSet, string(m.State), m.Old, m.New, mustJSON(append([]string{}, m.Files...)), m.Log, m.Why, m.Task, m.EndedAt, id); err != nil {
			return nil, err
		}
		data := mustJSON(map[string]string{"member": m.Member, "target": m.Target, "new": m.New, "task": m.Task, "why": m.Why})
		if err := t.event(Event{What: team.MergeEvents + string(m.State), ID: m.Branch, Before: string(before), After: string(m.State), Data: json.RawMessage(data)}); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// taskFor creates a task and assigns it to a member that is on the roster.
func (t *tx) taskFor(session string, n NewTask) (string, error) {
	made, err := createTasks(t, createArgs{Tasks: []NewTask{n}, By: t.who})
	if err != nil {
		return "", err
	}
	id := made[0].ID
	owner, err := t.memberBySession(session)
	switch {
	case team.IsCode(err, team.CodeNotFound), err == nil && owner.RemovedAt != 0:
		return id, nil // any member may claim it
	case err != nil:
		return "", err
	}
	_, err = updateTask(t, TaskPatch{ID: id, Owner: &session, By: t.who})
	return id, err
}

func (t *tx) merge(id int64) (m Merge, err error) {
	found, err := t.one(sqlMergeGet, func(r *sql.Rows) (err error) {
		m, err = scanMerge(r)
		return err
	}, id)
	if err == nil && !found {
		err = team.Errorf(team.CodeNotFound, "no merge %d", id).WithReason(team.ReasonMergeNotFound).WithHint("teamctl merge queue")
	}
	return m, err
}

func scanMerge(r *sql.Rows) (Merge, error) {
	var m Merge
	var gates, options, files string
	err := r.Scan(&m.ID, &m.Member, &m.Session, &m.Branch, &m.Tip, &m.Target, &m.Strategy, &gates, &options, &m.State,
		&m.Old, &m.New, &files, &m.Log, &m.Why, &m.Task, &m.AskedBy, &m.AskedAt, &m.EndedAt)
	for _, f := range []struct {
		text string
		to   any
	}{{gates, &m.Gates}, {options, &m.Options}, {files, &m.Files}} {
		if err == nil {
			err = json.Unmarshal([]byte(f.text), f.to)
		}
	}
	return m, err
}
