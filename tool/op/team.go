package op

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func teamOps() []Op {
	return []Op{
		with(Op{Name: "TeamCreate", Verb: "create", Gates: []tool.Operation{tool.OpTeamCreate}, Outside: true}, teamCreate),
		with(Op{Name: "TeamDelete", Verb: "delete", Gates: []tool.Operation{tool.OpTeamDelete}, Outside: true, Destructive: true, Idempotent: true}, teamDelete),
		with(Op{Name: "TeamShutdown", Verb: "shutdown", Gates: []tool.Operation{tool.OpRule}, Destructive: true, Idempotent: true, Long: true}, teamShutdown),
		with(Op{Name: "TeamUp", Verb: "up", Gates: []tool.Operation{tool.OpTeamCreate}, Outside: true, Destructive: true, Idempotent: true, Long: true}, teamUp),
		with(Op{Name: "TeamStatus", Verb: "ps", ReadOnly: true, Idempotent: true}, teamStatus),
	}
}

// TeamCreateIn creates a team.
type TeamCreateIn struct {
	TeamName    string `json:"team_name" jsonschema:"Name for the new team to create."`
	Description string `json:"description,omitempty" jsonschema:"What the team is for."`
	AgentType   string `json:"agent_type,omitempty" jsonschema:"Type or role of the team lead, for example researcher."`
	Repo        string `json:"repo,omitempty" jsonschema:"Path of the git repository to work on: every member gets a worktree and a branch of its own. Without one, nobody does."`
	Base        string `json:"base,omitempty" jsonschema:"Revision that the branches start from; HEAD if left out."`
	Unique      bool   `json:"unique,omitempty" jsonschema:"Take a free name such as NAME-2 where the name is taken, instead of failing."`
}

func teamCreate(ctx context.Context, s *Session, in TeamCreateIn) (tool.TeamCreateOut, error) {
	if cur := s.Current(); cur != "" && s.outsider().Role == team.RoleLeader {
		_, err := s.Env.Resolve(ctx, cur)
		if err == nil {
			return tool.TeamCreateOut{}, team.Errorf(team.CodeConflict, "Already leading team %q. Use TeamDelete first.", cur).WithReason(team.ReasonAlreadyLeading)
		}
		if team.ReasonOf(err) != "team_not_found" {
			return tool.TeamCreateOut{}, err
		}
	}
	out, err := s.Env.TeamCreate(ctx, s.outsider(), tool.TeamCreateIn{
		TeamName: in.TeamName, Description: in.Description, AgentType: in.AgentType, Repo: in.Repo, Base: in.Base, Unique: in.Unique,
	})
	if err == nil {
		s.setCurrent(out.TeamName)
	}
	return out, err
}

// TeamDeleteIn is empty: the current team is deleted.
type TeamDeleteIn struct{}

func teamDelete(ctx context.Context, s *Session, _ TeamDeleteIn) (tool.TeamDeleteOut, error) {
	// The team that this session has deleted, or the one that is named: without this a repeated
	// delete would reach another team, if it is the only one.
	if key, was := s.Env.WasDeleted(s.deletes()); was {
		return tool.DeletedBefore(key), nil
	}
	t, c, err := s.Open(ctx, "")
	if team.ReasonOf(err) == "team_not_found" {
		s.setCurrent("")
		return tool.TeamDeleteOut{Success: true, Message: "No team name found, nothing to clean up"}, nil
	}
	if err != nil {
		return tool.TeamDeleteOut{}, err
	}
	key := t.Layout.Key
	if err := t.Close(); err != nil {
		return tool.TeamDeleteOut{}, err
	}
	out, err := s.Env.Delete(ctx, c, key, tool.DeleteIn{})
	if err == nil {
		s.setDeleted(key)
	}
	return out, err
}

// TeamShutdownIn shuts members down.
type TeamShutdownIn struct {
	TeamRef
	Reason         string `json:"reason,omitempty" jsonschema:"Why; every member is told."`
	TimeoutSeconds int    `json:"timeout_seconds,omitempty" jsonschema:"How long each member may take to answer before it is ended; 10 if left out."`
}

// StopOut is the result for members that were asked to stop.
type StopOut struct {
	Success bool           `json:"success"` // all of them have stopped
	Message string         `json:"message"`
	Members []team.Stopped `json:"members"`
}

func teamShutdown(ctx context.Context, s *Session, in TeamShutdownIn) (StopOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (StopOut, error) {
		wait, err := seconds("timeout_seconds", in.TimeoutSeconds)
		if err != nil {
			return StopOut{}, err
		}
		return stop(ctx, t, c, team.StopRequest{Reason: in.Reason, Wait: wait, Remove: true})
	})
}

// stop asks members to stop and reports progress while it waits.
func stop(ctx context.Context, t *tool.Team, c tool.Caller, in team.StopRequest) (StopOut, error) {
	progress(ctx, 0, 1, "asked to shut down, waiting for the answers")
	done, err := t.Stop(ctx, c, in)
	if err != nil {
		return StopOut{}, err
	}
	out := StopOut{Success: true, Members: done}
	stopped, others := 0, ""
	for _, m := range done {
		if m.Outcome == team.StopRejected || m.Outcome == team.StopFailed {
			out.Success = false
			others += fmt.Sprintf("; %s %s", m.Name, m.Outcome)
			if m.Reason != "" {
				others += ": " + m.Reason
			}
			continue
		}
		stopped++
	}
	out.Message = fmt.Sprintf("%d of %d member(s) stopped", stopped, len(done)) + others
	progress(ctx, 1, 1, "%s", out.Message)
	return out, nil
}

// maxSeconds is the maximum wait that a caller may request.
const maxSeconds = 24 * 60 * 60

func seconds(name string, n int) (time.Duration, error) {
	if n < 0 || n > maxSeconds {
		return 0, team.Errorf(team.CodeInvalid, "%s must be 0 to %d", name, maxSeconds).WithReason(team.ReasonInput)
	}
	return time.Duration(n) * time.Second, nil
}

// TeamStatusIn names the team.
type TeamStatusIn struct{ TeamRef }

// TeamStatusOut is a summary of a team and its roster. Without a current team, Teams lists the
// existing ones.
type TeamStatusOut struct {
	TeamName     string          `json:"team_name,omitempty"`
	Description  string          `json:"description,omitempty"`
	TeamFilePath string          `json:"team_file_path,omitempty"`
	LeadAgentID  string          `json:"lead_agent_id,omitempty"`
	Repo         string          `json:"repo,omitempty"`
	You          string          `json:"you,omitempty"` // name of the caller
	Role         team.Role       `json:"role,omitempty"`
	Mode         team.Mode       `json:"permission_mode,omitempty"`
	Members      []MemberInfo    `json:"members,omitempty"`
	Tasks        ledger.Counts   `json:"tasks"`
	Approvals    int             `json:"pending_approvals"`
	Supervisor   int             `json:"supervisor_pid,omitempty"`
	Teams        []tool.TeamInfo `json:"teams,omitempty"`
}

// MemberInfo is one member in a list. State is the state of its process, Activity that of its
// agent: unknown is not idle.
type MemberInfo struct {
	Name      string        `json:"name"`
	AgentID   string        `json:"agent_id"`
	Role      team.Role     `json:"role"`
	Agent     string        `json:"agent,omitempty"`
	AgentType string        `json:"agent_type,omitempty"`
	Model     string        `json:"model,omitempty"`
	Color     string        `json:"color,omitempty"`
	State     team.Observed `json:"state"`
	Activity  team.Activity `json:"activity"`
	Ready     bool          `json:"ready"`
	Mode      team.Mode     `json:"permission_mode,omitempty"`
	PaneID    string        `json:"pane_id,omitempty"`
	Cwd       string        `json:"cwd,omitempty"`
	Worktree  string        `json:"worktree,omitempty"`
	Branch    string        `json:"branch,omitempty"`
	SpawnedAt int64         `json:"spawned_at"`
	Restarts  int           `json:"restarts,omitempty"`
	EndedAt   int64         `json:"ended_at,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	Exit      string        `json:"exit,omitempty"`
	Outcome   string        `json:"outcome,omitempty"` // of a change: started, restarted, paused, resumed; already_running and the like where nothing was changed

	// Runtime state, only in a status.
	AwaitsPlan bool  `json:"awaiting_plan_approval,omitempty"`
	ToStop     bool  `json:"shutdown_requested,omitempty"`
	Pending    int   `json:"pending_messages,omitempty"`
	Tokens     int64 `json:"tokens,omitempty"`
	Stalled    int64 `json:"stalled_since,omitempty"`
}

func memberInfo(m ledger.Member) MemberInfo {
	return MemberInfo{
		Name: m.Name, AgentID: m.AgentID, Role: m.Role, Agent: m.Spec.Agent, AgentType: m.Spec.AgentType, Model: m.Spec.Model,
		Color: m.Color, State: m.Observed, Activity: m.Activity, Ready: m.Ready, Mode: m.Spec.Mode, PaneID: m.PaneID, Cwd: m.Spec.Cwd,
		Worktree: m.Worktree, Branch: m.Branch, SpawnedAt: m.JoinedAt, Restarts: m.Restarts, EndedAt: m.EndedAt, Reason: m.Reason, Exit: m.ExitText,
	}
}

// withRuntime adds runtime state to a member.
func (i MemberInfo) withRuntime(r tool.Runtime) MemberInfo {
	i.AwaitsPlan, i.ToStop, i.Pending, i.Tokens, i.Stalled = r.AwaitingPlanApproval, r.ShutdownRequested, r.PendingMessages, r.Tokens, r.StalledSince
	return i
}

func teamStatus(ctx context.Context, s *Session, in TeamStatusIn) (TeamStatusOut, error) {
	t, c, err := s.Open(ctx, in.TeamName)
	if r := team.ReasonOf(err); in.TeamName == "" && (r == "team_not_found" || r == "team_ambiguous") && s.outsider().Role == team.RoleLeader {
		list, err := s.Env.Teams(ctx)
		return TeamStatusOut{Teams: list}, err
	}
	if err != nil {
		return TeamStatusOut{}, err
	}
	out, err := Status(ctx, t, c)
	return out, errors.Join(err, t.Close())
}

// Status returns the state of the team for a caller.
func Status(ctx context.Context, t *tool.Team, c tool.Caller) (TeamStatusOut, error) {
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return TeamStatusOut{}, err
	}
	out := TeamStatusOut{
		TeamName: row.Key, Description: row.Description, TeamFilePath: t.Layout.Config(), LeadAgentID: team.AgentID(team.LeadName, row.Key),
		Repo: row.Repo, You: c.Name, Role: c.Role, Mode: c.Mode,
	}
	members, pid, err := t.Members(ctx)
	if err != nil {
		return out, err
	}
	out.Supervisor = pid
	run, err := t.Runtimes(ctx, members)
	if err != nil {
		return out, err
	}
	for i, m := range members {
		out.Members = append(out.Members, memberInfo(m).withRuntime(run[i]))
	}
	if out.Tasks, err = t.Ledger.Counts(ctx); err != nil {
		return out, err
	}
	waiting, err := t.Ledger.Approvals(ctx, ledger.ApprovalFilter{State: ledger.ApprovalPending})
	out.Approvals = len(waiting)
	return out, err
}
