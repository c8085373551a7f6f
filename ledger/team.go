package ledger

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

const (
	sqlTeamGet = `SELECT key, name, description, repo, base, worktreeDir, createdAt, leadSession, status, hidden FROM team WHERE one = 1`
	sqlTeamPut = `INSERT INTO team(one, key, name, description, repo, base, worktreeDir, createdAt, leadSession, status, hidden)
		VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlTeamSet = `UPDATE team SET description = coalesce(?, description), repo = coalesce(?, repo), base = coalesce(?, base),
		worktreeDir = coalesce(?, worktreeDir), leadSession = coalesce(?, leadSession), status = coalesce(?, status),
		hidden = coalesce(?, hidden) WHERE one = 1`
)

// TeamPatch changes those fields that are set.
type TeamPatch struct {
	Description *string   `json:"description,omitempty"`
	Repo        *string   `json:"repo,omitempty"`
	Base        *string   `json:"base,omitempty"`
	WorktreeDir *string   `json:"worktreeDir,omitempty"`
	LeadSession *string   `json:"leadSession,omitempty"`
	Status      *string   `json:"status,omitempty"`        // "active", "shutdown"
	Hidden      *[]string `json:"hiddenPaneIds,omitempty"` // the whole new list
}

// CreateTeam writes the team's row and opens its first run. A zero CreatedAt
// becomes the current time, an empty Status "active". CodeConflict if there
// already is a team.
func (l *Ledger) CreateTeam(ctx context.Context, row TeamRow) (TeamRow, error) {
	return write[TeamRow](ctx, l, opTeamCreate, row)
}

// Team returns the team's row; CodeNotFound before CreateTeam.
func (l *Ledger) Team(ctx context.Context) (TeamRow, error) {
	rows, err := read(ctx, l.db, "read the team", scanTeam, sqlTeamGet)
	if err != nil {
		return TeamRow{}, err
	}
	if len(rows) == 0 {
		return TeamRow{}, errNoTeam()
	}
	return rows[0], nil
}

// UpdateTeam changes the team's row and returns it.
func (l *Ledger) UpdateTeam(ctx context.Context, p TeamPatch) (TeamRow, error) {
	return write[TeamRow](ctx, l, opTeamUpdate, p)
}

func createTeam(t *tx, row TeamRow) (TeamRow, error) {
	there, found, err := value[string](t, `SELECT key FROM team`)
	if err != nil {
		return row, err
	}
	if found {
		return row, team.Errorf(team.CodeConflict, "team %s already exists", there).WithReason(team.ReasonTeamExists)
	}
	if row.Key == "" || row.LeadSession == "" {
		return row, team.Errorf(team.CodeInvalid, "a team needs a key and a lead session")
	}
	if row.Name == "" {
		row.Name = row.Key
	}
	if row.CreatedAt == 0 {
		row.CreatedAt = t.now
	}
	if row.Status == "" {
		row.Status = "active"
	}
	if _, err := t.exec(sqlTeamPut, row.Key, row.Name, row.Description, row.Repo, row.Base, row.WorktreeDir,
		row.CreatedAt, row.LeadSession, row.Status, mustJSON(append([]string{}, row.Hidden...))); err != nil {
		return row, err
	}
	if err := t.event(Event{What: team.EventTeamCreated, ID: row.Key, After: row.Status}); err != nil {
		return row, err
	}
	_, err = startRun(t, RunStart{})
	return row, err
}

func updateTeam(t *tx, p TeamPatch) (TeamRow, error) {
	before, err := t.team()
	if err != nil {
		return before, err
	}
	if p.Status != nil && *p.Status != "active" && *p.Status != "shutdown" {
		return before, team.Errorf(team.CodeInvalid, "unknown team status %q", *p.Status)
	}
	var hidden any
	if p.Hidden != nil {
		hidden = mustJSON(append([]string{}, *p.Hidden...))
	}
	if _, err := t.exec(sqlTeamSet, p.Description, p.Repo, p.Base, p.WorktreeDir, p.LeadSession, p.Status, hidden); err != nil {
		return before, err
	}
	after, err := t.team()
	if err == nil && after.Status != before.Status {
		err = t.event(Event{What: team.EventTeamStatus, ID: after.Key, Before: before.Status, After: after.Status})
	}
	return after, err
}

func (t *tx) team() (row TeamRow, err error) {
	found, err := t.one(sqlTeamGet, func(r *sql.Rows) (err error) {
		row, err = scanTeam(r)
		return err
	})
	if err == nil && !found {
		err = errNoTeam()
	}
	return row, err
}

func scanTeam(r *sql.Rows) (TeamRow, error) {
	var row TeamRow
	var hidden string
	if err := r.Scan(&row.Key, &row.Name, &row.Description, &row.Repo, &row.Base, &row.WorktreeDir,
		&row.CreatedAt, &row.LeadSession, &row.Status, &hidden); err != nil {
		return row, err
	}
	if hidden == "[]" {
		return row, nil
	}
	return row, json.Unmarshal([]byte(hidden), &row.Hidden)
}

func errNoTeam() error {
	return team.Errorf(team.CodeNotFound, "the ledger has no team yet").
		WithReason(team.ReasonTeamNotFound).WithHint("teamctl doctor shows what is in its directory")
}
