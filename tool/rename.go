package tool

import (
	"context"
	"errors"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Renamed is the result of Rename.
type Renamed struct {
	Status   string `json:"status"` // renamed or already_renamed
	Was      string `json:"was"`
	Name     string `json:"name"`
	AgentID  string `json:"agent_id"`
	Left     bool   `json:"left,omitempty"`    // the member is not on the roster
	Started  bool   `json:"started,omitempty"` // with Restart: it has been started under its name
	Worktree string `json:"worktree,omitempty"`
	Branch   string `json:"branch,omitempty"`
}

// Rename renames a member that is stopped or has left, with its mail, its tasks, its bundle and
// its settings. The worktree and the branch keep their names, and the former name leads to the
// member until another one has it.
//
// It refuses a name that is in use, reserved or invalid, and a running member.
func (t *Team) Rename(ctx context.Context, c Caller, old, name string) (Renamed, error) {
	return t.rename(ctx, c, old, name, func(ctx context.Context, _ ledger.Member, _ string) (context.Context, error) { return ctx, nil })
}

// restartWithin bounds the rename and the start of a member that was stopped for them.
const restartWithin = 5 * time.Minute

// RenameRestart renames a member as Rename does, and stops it first if it runs. In the end it is
// started in its conversation under the new name, or under the former one if the rename has failed.
// What would refuse the rename is looked at before the member is stopped. If the caller is killed
// amid it the member may be stopped, under either name: the same call does the rest.
//
// Errors are those of Rename, and CodeConflict: shutdown_rejected, when the member does not want to
// be stopped; member_removed, for a member that has left; member_running, for the caller itself.
func (t *Team) RenameRestart(ctx context.Context, c Caller, old, name string) (Renamed, error) {
	once, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartWithin)
	defer cancel()
	var was ledger.Member
	out, err := t.rename(ctx, c, old, name, func(ctx context.Context, m ledger.Member, name string) (context.Context, error) {
		switch {
		case m.RemovedAt != 0:
			return ctx, team.Errorf(team.CodeConflict, "%s has left the team", m.Name).WithReason(team.ReasonMemberRemoved).
				WithHint("teamctl rename " + m.Name + " " + name + " && teamctl start " + name)
		case c.Session == m.SessionKey:
			return ctx, team.Errorf(team.CodeConflict, "%s would be ended before it could rename itself", m.Name).WithReason(team.ReasonMemberRunning).
				WithHint("ask the lead: teamctl send team-lead \"teamctl rename --restart " + m.Name + " " + name + "\"")
		case team.KindOf(m.Spec.Agent).External:
			return ctx, nil // the ledger refuses it
		case m.Name != name:
			if err := t.Ledger.NameFree(ctx, m.SessionKey, name); err != nil {
				return ctx, err
			}
		}
		if m.Name == name && m.Desired == team.WantRunning && !m.Observed.Terminal() {
			return ctx, nil // nothing to do
		}
		was = m
		if m.Name == name || m.Observed.Terminal() && m.Desired == team.WantStopped {
			return once, nil
		}
		return once, t.stopToRename(once, c, m, name)
	})
	if was.SessionKey == "" || team.ReasonOf(err) == team.ReasonShutdownRejected {
		return out, err
	}
	now, merr := t.Ledger.MemberBySession(once, was.SessionKey)
	if merr != nil {
		return out, errors.Join(err, merr)
	}
	if _, serr := t.Start(once, c, []string{now.Name}); serr != nil {
		return out, errors.Join(err, serr)
	}
	out.Started = true
	return out, err
}

// stopToRename stops a member that keeps its place on the roster.
func (t *Team) stopToRename(ctx context.Context, c Caller, m ledger.Member, name string) error {
	list, err := t.Stop(ctx, c, team.StopRequest{Names: []string{m.Name}, Reason: "you are renamed to " + name + ", and started again"})
	for _, s := range list {
		switch s.Outcome {
		case team.StopRejected:
			return team.Errorf(team.CodeConflict, "%s rejected the shutdown: %s", s.Name, s.Reason).WithReason(team.ReasonShutdownRejected).
				WithHint("teamctl kill " + m.Name + " && teamctl rename " + m.Name + " " + name + " && teamctl start " + name)
		case team.StopFailed:
			return team.Errorf(team.CodeInternal, "%s could not be stopped: %s", s.Name, s.Reason).WithHint("teamctl kill " + m.Name)
		}
	}
	return err
}

// rename calls before with the member and the new name as it is written once the arguments are
// known to be right, and renames in its context if that has no error.
func (t *Team) rename(ctx context.Context, c Caller, old, name string, before func(ctx context.Context, m ledger.Member, name string) (context.Context, error)) (Renamed, error) {
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
	if ctx, err = before(ctx, m, key); err != nil {
		return Renamed{}, err
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
