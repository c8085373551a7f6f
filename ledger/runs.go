package ledger

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

const (
	runCols     = `id, startedAt, coalesce(endedAt, 0), name, coalesce(parent, 0), depth, scratchpad, scratchpadVersion`
	sqlRunGet   = `SELECT ` + runCols + ` FROM runs INDEXED BY idx_runs_open WHERE endedAt IS NULL ORDER BY depth DESC LIMIT 1`
	sqlPadMerge = `UPDATE runs SET scratchpad = ?, scratchpadVersion = scratchpadVersion + 1 WHERE id = ? AND scratchpadVersion = ?`
)

// Run is one run of a team: it counts messages and owns the scratchpad. A run
// may contain a sub-run, and so on up to depth MaxRunDepth. The deepest open
// run is the current one; a team always has one.
type Run struct {
	ID        int64  `json:"id"`
	StartedAt int64  `json:"startedAt"`
	EndedAt   int64  `json:"endedAt,omitempty"`
	Name      string `json:"name,omitempty"`
	Parent    int64  `json:"parent,omitempty"` // the run that contains it
	Depth     int    `json:"depth"`            // 0 for a top-level run
}

// Scratchpad is the JSON document of a run.
type Scratchpad struct {
	Run     int64           `json:"run"`
	Doc     json.RawMessage `json:"shared_scratchpad"` // an object
	Version int64           `json:"shared_scratchpad_version"`
}

// CurrentRun returns the deepest open run; CodeNotFound before CreateTeam.
func (l *Ledger) CurrentRun(ctx context.Context) (Run, error) {
	row, err := l.runRow(ctx)
	return row.Run, err
}

// Scratchpad returns the current run's shared document; a new one is {} at
// version 0.
func (l *Ledger) Scratchpad(ctx context.Context) (Scratchpad, error) {
	row, err := l.runRow(ctx)
	return row.pad, err
}

// MergeScratchpad sets the top-level keys of patch, an object, in the shared
// document; their values replace the old ones completely. expected is the
// version from which the patch was computed; if it has changed, the error is
// CodeConflict (reason scratchpad_version_conflict): read again, compute again,
// try again.
func (l *Ledger) MergeScratchpad(ctx context.Context, patch json.RawMessage, expected int64) (Scratchpad, error) {
	return write[Scratchpad](ctx, l, opScratchpad, padArgs{patch, expected})
}

type padArgs struct {
	Patch    json.RawMessage `json:"patch"`
	Expected int64           `json:"expected"`
}

type runRow struct {
	Run
	pad Scratchpad
}

func (l *Ledger) runRow(ctx context.Context) (runRow, error) {
	rows, err := read(ctx, l.db, "read the run", scanRun, sqlRunGet)
	if err == nil && len(rows) == 0 {
		err = errNoRun()
	}
	if err != nil {
		return runRow{}, err
	}
	return rows[0], nil
}

func (t *tx) run() (row runRow, err error) {
	found, err := t.one(sqlRunGet, func(r *sql.Rows) (err error) {
		row, err = scanRun(r)
		return err
	})
	if err == nil && !found {
		err = errNoRun()
	}
	return row, err
}

func mergeScratchpad(t *tx, a padArgs) (Scratchpad, error) {
	patch, err := object("a scratchpad patch", a.Patch)
	if err != nil {
		return Scratchpad{}, err
	}
	if patch == nil {
		return Scratchpad{}, team.Errorf(team.CodeInvalid, "a scratchpad patch must be a JSON object")
	}
	row, err := t.run()
	if err != nil {
		return Scratchpad{}, err
	}
	pad := row.pad
	if pad.Version != a.Expected {
		return Scratchpad{}, team.Errorf(team.CodeConflict, "scratchpad_version_conflict: expected %d current %d", a.Expected, pad.Version).
			WithReason(team.ReasonScratchpad).WithHint("read the scratchpad again and repeat the change")
	}
	doc, err := object("the scratchpad", pad.Doc)
	if err != nil {
		return Scratchpad{}, err
	}
	for k, v := range patch {
		doc[k] = v
	}
	pad.Doc = json.RawMessage(mustJSON(doc))
	if _, err := t.exec(sqlPadMerge, string(pad.Doc), row.ID, a.Expected); err != nil {
		return Scratchpad{}, err
	}
	pad.Version++
	return pad, t.event(Event{What: team.EventScratchpadMerged, ID: itoa(row.ID), Before: itoa(a.Expected), After: itoa(pad.Version)})
}

func scanRun(r *sql.Rows) (runRow, error) {
	var row runRow
	var doc string
	err := r.Scan(&row.ID, &row.StartedAt, &row.EndedAt, &row.Name, &row.Parent, &row.Depth, &doc, &row.pad.Version)
	row.pad.Run, row.pad.Doc = row.ID, json.RawMessage(doc)
	return row, err
}

func errNoRun() error {
	return team.Errorf(team.CodeNotFound, "the team has no run").WithReason(team.ReasonTeamNotFound)
}
