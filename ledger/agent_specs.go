package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

const (
	sqlSpecs      = `SELECT config_json, created_at, updated_at FROM agent_specs ORDER BY id`
	sqlSpecName   = `SELECT name FROM agent_specs WHERE id = ?`
	sqlSpecID     = `SELECT id FROM agent_specs WHERE name = ?`
	sqlSpecExists = `SELECT EXISTS (SELECT 1 FROM agent_specs WHERE id = ?)`
	sqlSpecPut    = `INSERT INTO agent_specs(id, name, config_json, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?4)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, config_json = excluded.config_json, updated_at = excluded.updated_at
		WHERE config_json <> excluded.config_json`
	sqlSpecDrop = `DELETE FROM agent_specs WHERE id = ?`
	sqlSpecUsed = `SELECT session_key FROM sessions WHERE active_agent_id = ? AND state = 'open' LIMIT 1`
)

// Spec is an agent spec of the team with its times.
type Spec struct {
	team.AgentSpec
	CreatedAt int64 `json:"created_at"`
	UpdatedAt int64 `json:"updated_at"`
}

// PutSpecIn makes or changes a spec.
type PutSpecIn struct {
	Spec team.AgentSpec `json:"spec"`
	New  bool           `json:"new,omitempty"` // refuse a known id
}

// PutSpec makes or changes a spec. Errors: CodeInvalid bad_spec; CodeConflict
// agent_name_taken for an id or name that another spec has, regardless of case.
func (l *Ledger) PutSpec(ctx context.Context, in PutSpecIn) error {
	_, err := write[none](ctx, l, opSpecPut, in)
	return err
}

// DeleteSpec removes a spec. Errors: CodeNotFound agent_not_found, CodeConflict
// agent_in_use while an open session has it.
func (l *Ledger) DeleteSpec(ctx context.Context, id string) error {
	_, err := write[none](ctx, l, opSpecDelete, id)
	return err
}

// Specs returns the team's specs by id.
func (l *Ledger) Specs(ctx context.Context) ([]Spec, error) {
	return read(ctx, l.db, "read agent specs", func(r *sql.Rows) (s Spec, err error) {
		var config string
		if err = r.Scan(&config, &s.CreatedAt, &s.UpdatedAt); err == nil {
			err = json.Unmarshal([]byte(config), &s.AgentSpec)
		}
		return s, err
	}, sqlSpecs)
}

// Spec returns the spec with this id, or with this name regardless of case. Errors:
// CodeNotFound agent_not_found.
func (l *Ledger) Spec(ctx context.Context, idOrName string) (Spec, error) {
	list, err := l.Specs(ctx)
	if err != nil {
		return Spec{}, err
	}
	i := slices.IndexFunc(list, func(s Spec) bool { return s.ID == idOrName })
	if i < 0 {
		i = slices.IndexFunc(list, func(s Spec) bool { return strings.EqualFold(s.Name, idOrName) })
	}
	if i < 0 {
		return Spec{}, noSpec(idOrName)
	}
	return list[i], nil
}

func noSpec(name string) error {
	return team.Errorf(team.CodeNotFound, "no agent %q", name).WithReason(team.ReasonSpecNotFound).WithHint("teamctl agents")
}

func putSpec(t *tx, in PutSpecIn) (none, error) {
	s := in.Spec
	if err := s.Validate(); err != nil {
		return none{}, err
	}
	taken := func(what string) error {
		return team.Errorf(team.CodeConflict, "another agent has the %s %q", what, s.Name).WithReason(team.ReasonSpecTaken).WithHint("teamctl agents")
	}
	known, _, err := value[bool](t, sqlSpecExists, s.ID)
	if err != nil {
		return none{}, err
	}
	if known && in.New {
		return none{}, team.Errorf(team.CodeConflict, "another agent has the id %q", s.ID).WithReason(team.ReasonSpecTaken).WithHint("teamctl agents")
	}
	owner, found, err := value[string](t, sqlSpecID, s.Name)
	switch {
	case err != nil:
		return none{}, err
	case found && owner != s.ID:
		return none{}, taken("name")
	}
	config, err := json.Marshal(s)
	if err != nil {
		return none{}, errors.Join(team.Errorf(team.CodeInvalid, "encode agent %s", s.ID), err)
	}
	n, err := t.exec(sqlSpecPut, s.ID, s.Name, string(config), t.now)
	if err != nil || n == 0 {
		return none{}, err
	}
	what := team.EventAgentCreated
	if known {
		what = team.EventAgentUpdated
	}
	return none{}, t.event(Event{What: what, ID: s.ID, Data: config})
}

func deleteSpec(t *tx, id string) (none, error) {
	user, used, err := value[string](t, sqlSpecUsed, id)
	if err != nil {
		return none{}, err
	}
	if used {
		return none{}, team.Errorf(team.CodeConflict, "session %s uses agent %s", user, id).WithReason(team.ReasonSpecInUse).
			WithHint("teamctl session close " + user)
	}
	n, err := t.exec(sqlSpecDrop, id)
	if err == nil && n == 0 {
		err = noSpec(id)
	}
	if err != nil {
		return none{}, err
	}
	return none{}, t.event(Event{What: team.EventAgentDeleted, ID: id})
}
