package tool

import (
	"context"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Renamed is the result of Rename.
type Renamed struct {
	Status   string `json:"status"` // renamed or already_renamed
	Was      string `json:"was"`
	Name     string `json:"name"`
	AgentID  string `json:"agent_id"`
	Left     bool   `json:"left,omitempty"` // the member is not on the roster
	Worktree string `json:"worktree,omitempty"`
	Branch   string `json:"branch,omitempty"`
}

// Rename renames a member that is stopped or has left, with its mail, its tasks, its bundle and
// its settings. The worktree and the branch keep their names, and the former name leads to the
// member until another one has it.
//
// It refuses a name that is in use, reserved or invalid, and a running member.
func (t *Team) Rename(ctx context.Context, c Caller, old, name string) (Renamed, error) {
	if err := t.may(ctx, c, OpRule); err != nil {
		return Renamed{}, err
	}
	m, err := t.Member(ctx, old)
	if err != nil {
		return Renamed{}, err
	}
	if m.Name == team.LeadName {
		return Renamed{}, team.Errorf(team.CodeInvalid, "%s is the lead, which has its name in every team", m.Name).
			WithReason(team.ReasonLead).WithHint("teamctl rename MEMBER NAME")
	}
	key, err := team.AgentKey(name)
	if err != nil {
		return Renamed{}, err
	}
	was, err := t.address(old)
	if err != nil {
		return Renamed{}, err
	}
	if was == m.SessionKey {
		was = m.Name
	}
	out := Renamed{Status: "renamed", Was: was, Left: m.RemovedAt != 0, Worktree: m.Worktree, Branch: m.Branch}
	switch {
	case m.Name == key:
		out.Status = "already_renamed"
	case m.Name != was: // found by a former name: another rename came first
		return Renamed{}, team.Errorf(team.CodeConflict, "%s was renamed to %s", was, m.Name).WithReason(team.ReasonRenamed).
			WithHint("teamctl rename " + m.Name + " " + key)
	}
	m, err = supervise(ctx, t, func(s Supervisor) (ledger.Member, error) { return s.RenameMember(ctx, m.SessionKey, key) })
	out.Name, out.AgentID = m.Name, m.AgentID
	return out, err
}

// savedNames returns the names that a member's saved states may have, including former ones, each
// with the time until which it had the name (Unix milliseconds; 0: current).
func (t *Team) savedNames(ctx context.Context, agent string) (map[string]int64, error) {
	name, err := t.address(agent)
	if err != nil {
		return nil, err
	}
	m, err := t.Ledger.Member(ctx, name)
	if team.IsCode(err, team.CodeNotFound) {
		return map[string]int64{name: 0}, nil // saved states outlive their member
	}
	if err != nil {
		return nil, err
	}
	renames, err := t.Ledger.Renames(ctx, m.SessionKey)
	names := make(map[string]int64, 1+len(renames))
	for _, r := range renames {
		names[r.Was] = r.At
	}
	names[m.Name] = 0
	return names, err
}
