package ledger

import (
	"context"
	"database/sql"
	"strings"
	"unicode/utf8"

	"github.com/teamctl/teamctl/team"
)

const (
	sqlRunByID = `SELECT ` + runCols + ` FROM runs WHERE id = ?`
	sqlRunPut  = `INSERT INTO runs(startedAt, name, parent, depth) VALUES (?, ?, ?, ?) RETURNING id`
	// The open runs form a chain: those at the same depth or deeper are the run
	// itself and its sub-runs.
	sqlRunsEnd  = `UPDATE runs SET endedAt = ?1 WHERE endedAt IS NULL AND depth >= ?2 RETURNING id`
	sqlRunInfos = `SELECT ` + runCols + `,
		(SELECT count(*) FROM messages m WHERE m.run = runs.id AND m.kind IN ('message', 'broadcast', 'task_request', 'task_response', 'info', 'error')),
		endedAt IS NULL AND depth = (SELECT max(depth) FROM runs WHERE endedAt IS NULL)
		FROM runs`
)

// MaxRunDepth is the maximum depth of sub-runs.
const MaxRunDepth = 8

// maxRunName is the maximum length of a run's name, in characters.
const maxRunName = 100

// RunStart describes the run to start.
type RunStart struct {
	Name string `json:"name,omitempty"`
	Sub  bool   `json:"sub,omitempty"` // a sub-run of the current run, which stays open
}

// RunInfo is a run with its message count and scratchpad.
type RunInfo struct {
	Run
	Current    bool       `json:"current"`
	Messages   int        `json:"messages"` // those that count against Cap
	Cap        int        `json:"cap"`
	Scratchpad Scratchpad `json:"scratchpad"`
}

// RunsClosed is the result of CloseRun.
type RunsClosed struct {
	Closed  []int64 `json:"closed"`
	Current Run     `json:"current"`
}

// StartRun closes the open runs and starts the next.
func (l *Ledger) StartRun(ctx context.Context) (Run, error) { return l.BeginRun(ctx, RunStart{}) }

// BeginRun starts a run, with an empty scratchpad and no messages. Unless it is
// a sub-run, all open runs are closed. CodeLimit (run_depth) for a sub-run
// deeper than MaxRunDepth.
func (l *Ledger) BeginRun(ctx context.Context, in RunStart) (Run, error) {
	return write[Run](ctx, l, opRunStart, in)
}

// CloseRun closes a run (0: the current one) and its sub-runs. The run that
// contains it becomes current; if there is none, the next run is started, so
// that a team always has one. CodeNotFound run_not_found, CodeConflict
// run_closed.
func (l *Ledger) CloseRun(ctx context.Context, id int64) (RunsClosed, error) {
	return write[RunsClosed](ctx, l, opRunClose, id)
}

// Runs returns the runs, newest first; limit 0 means all.
func (l *Ledger) Runs(ctx context.Context, limit int) ([]RunInfo, error) {
	q, args := limited(sqlRunInfos+` ORDER BY id DESC`, nil, limit)
	return read(ctx, l.db, "read the runs", scanRunInfo, q, args...)
}

// RunInfo returns one run; 0 is the current one. CodeNotFound run_not_found.
func (l *Ledger) RunInfo(ctx context.Context, id int64) (RunInfo, error) {
	if id == 0 {
		now, err := l.CurrentRun(ctx)
		if err != nil {
			return RunInfo{}, err
		}
		id = now.ID
	}
	rows, err := read(ctx, l.db, "read run "+itoa(id), scanRunInfo, sqlRunInfos+` WHERE id = ?`, id)
	if err == nil && len(rows) == 0 {
		err = errNoSuchRun(id)
	}
	if err != nil {
		return RunInfo{}, err
	}
	return rows[0], nil
}

func startRun(t *tx, in RunStart) (Run, error) {
	in.Name = strings.TrimSpace(in.Name)
	if utf8.RuneCountInString(in.Name) > maxRunName {
		return Run{}, team.Errorf(team.CodeLimit, "the name of a run has at most %d characters", maxRunName).WithReason(team.ReasonTooLong)
	}
	run := Run{StartedAt: t.now, Name: in.Name}
	if in.Sub {
		in, err := t.run()
		if err != nil {
			return Run{}, err
		}
		run.Parent, run.Depth = in.ID, in.Depth+1
		if run.Depth > MaxRunDepth {
			return Run{}, team.Errorf(team.CodeLimit, "run %d is at depth %d, the maximum for sub-runs", in.ID, in.Depth).
				WithReason(team.ReasonRunDepth).WithHint("close one: teamctl run close")
		}
	} else if _, err := t.endRuns(0); err != nil {
		return Run{}, err
	}
	id, _, err := value[int64](t, sqlRunPut, run.StartedAt, run.Name, orNull(run.Parent), run.Depth)
	if err != nil {
		return Run{}, err
	}
	t.wrote, run.ID = true, id
	return run, t.event(Event{What: team.EventRunStarted, ID: itoa(id), After: "open"})
}

func closeRun(t *tx, id int64) (RunsClosed, error) {
	var row runRow
	var err error
	if id == 0 {
		row, err = t.run()
	} else {
		var found bool
		found, err = t.one(sqlRunByID, func(r *sql.Rows) (err error) {
			row, err = scanRun(r)
			return err
		}, id)
		if err == nil && !found {
			err = errNoSuchRun(id)
		}
	}
	if err != nil {
		return RunsClosed{}, err
	}
	if row.EndedAt != 0 {
		return RunsClosed{}, team.Errorf(team.CodeConflict, "run %d is already closed", row.ID).WithReason(team.ReasonRunClosed)
	}
	out := RunsClosed{}
	if out.Closed, err = t.endRuns(row.Depth); err != nil {
		return out, err
	}
	if row.Depth == 0 {
		out.Current, err = startRun(t, RunStart{})
		return out, err
	}
	now, err := t.run()
	out.Current = now.Run
	return out, err
}

// endRuns closes the open runs from the given depth on, and logs each.
func (t *tx) endRuns(depth int) ([]int64, error) {
	ids, err := column[int64](t, sqlRunsEnd, t.now, depth)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := t.event(Event{What: team.EventRunClosed, ID: itoa(id), Before: "open", After: "closed"}); err != nil {
			return nil, err
		}
	}
	return append([]int64{}, ids...), nil
}

func scanRunInfo(r *sql.Rows) (RunInfo, error) {
	i := RunInfo{Cap: team.MaxMessagesPerRun}
	var doc string
	err := r.Scan(&i.ID, &i.StartedAt, &i.EndedAt, &i.Name, &i.Parent, &i.Depth, &doc, &i.Scratchpad.Version, &i.Messages, &i.Current)
	i.Scratchpad.Run, i.Scratchpad.Doc = i.ID, []byte(doc)
	return i, err
}

func errNoSuchRun(id int64) error {
	return team.Errorf(team.CodeNotFound, "no run %d", id).WithReason(team.ReasonRunNotFound).WithHint("teamctl run list")
}
