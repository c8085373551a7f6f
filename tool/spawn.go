package tool

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/team"
)

// maxCount is the maximum of one spawn request.
const maxCount = 200

// Spawn starts in.Count members in parallel and returns when all are up. If some fail, the others
// stay: the slice says which, the error joins the reasons.
func (t *Team) Spawn(ctx context.Context, c Caller, in SpawnIn) ([]Spawned, error) {
	approval, err := t.maySpawn(ctx, c, in)
	if err != nil {
		return nil, err
	}
	if approval {
		if _, err := t.spawnIn(ctx, c, in); err != nil {
			return nil, err
		}
		a, err := t.askDelegation(ctx, c, "spawn "+in.Name, delegation{Spawn: &in})
		return []Spawned{{Status: "approval_required", Name: in.Name, TeamName: t.Layout.Key, Approval: a.ID}}, err
	}
	return t.spawn(ctx, c, in)
}

// spawn is Spawn for an authorised caller.
func (t *Team) spawn(ctx context.Context, c Caller, in SpawnIn) ([]Spawned, error) {
	asked, err := t.spawnIn(ctx, c, in)
	if err != nil {
		return nil, err
	}
	n, err := many(in)
	if err != nil {
		return nil, err
	}
	if _, err := t.supervisor(ctx); err != nil { // once, instead of for each member
		return nil, err
	}
	out := make([]Spawned, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			res, err := supervise(ctx, t, func(s Supervisor) (ledger.SpawnResult, error) { return s.Spawn(ctx, asked) })
			out[i], errs[i] = t.spawned(res, asked), err
			if err != nil {
				out[i] = Spawned{Status: "failed", Name: asked.Name, TeamName: t.Layout.Key, Error: err.Error()}
			}
		}()
	}
	wg.Wait()
	t.warnTaken(ctx, asked.Name, out)
	t.noteModel(ctx, out)
	return out, joinErrors(errs)
}

// nameSpec makes a built-in agent of a spawn whose agent is the id or the name of a spec. A kind of
// that name comes first.
func (t *Team) nameSpec(ctx context.Context, in *SpawnIn) {
	if in.Agent == "" || in.AgentType != "" || team.IsAgentKind(in.Agent) {
		return
	}
	if t.Env.CheckAgent != nil && t.Env.CheckAgent(in.Agent) == nil {
		return
	}
	if s, err := t.spec(ctx, in.Agent, true); err == nil {
		in.Agent, in.AgentType = team.AgentLLM, s.ID
	}
}

// spawnIn validates the input before anything is started.
func (t *Team) spawnIn(ctx context.Context, c Caller, in SpawnIn) (team.SpawnRequest, error) {
	var none team.SpawnRequest
	name, err := team.AgentKey(in.Name)
	if err != nil {
		return none, err
	}
	role, err := team.ParseRole(string(in.Role))
	if err != nil {
		return none, err
	}
	mode, err := t.modeOf(ctx, in.Mode)
	if err != nil {
		return none, err
	}
	if (mode == team.ModeBypass) != in.Bypass {
		return none, team.Errorf(team.CodeInvalid, "mode bypassPermissions and dangerously_skip_permissions go together: one without the other is refused").
			WithReason(team.ReasonBypass).WithHint("teamctl spawn " + in.Name + " --dangerously-skip-permissions")
	}
	restart, err := team.ParseRestartPolicy(string(in.Restart))
	if err != nil {
		return none, err
	}
	servers, err := team.ParseServers(string(in.MCP))
	if err != nil {
		return none, err
	}
	switch in.Layout {
	case team.PaneAuto, team.PaneSplit, team.PaneWindow, team.PaneSession:
	default:
		return none, team.Errorf(team.CodeInvalid, "unknown layout %q", in.Layout).WithHint("split, window or session")
	}
	if in.Agent == "" {
		in.Agent = team.AgentWorker
		if strings.Contains(in.Model, "/") {
			in.Agent = team.AgentLLM
		}
		if len(in.Command) > 0 {
			in.Agent = team.AgentCommand
		}
	}
	t.nameSpec(ctx, &in)
	if team.KindOf(in.Agent).Command && len(in.Command) == 0 {
		return none, team.Errorf(team.CodeInvalid, "a member without an agent needs a command").WithHint("teamctl spawn " + in.Name + " -- make test")
	}
	if team.KindOf(in.Agent).InProcess && len(in.Command) > 0 { // for others their launch decides: acp needs one, claude takes arguments
		return none, team.Errorf(team.CodeInvalid, "agent %q takes no command", in.Agent).
			WithHint("leave out --agent to run a command as a member")
	}
	if in.Backend == "in-process" && !team.KindOf(in.Agent).InProcess {
		return none, team.Errorf(team.CodeInvalid, "only built-in agents run in-process, not agent %q", in.Agent).
			WithHint("--backend tmux or pty")
	}
	if err := t.Env.checkConfine(in); err != nil {
		return none, err
	}
	if err := t.checkSpawn(ctx, in); err != nil {
		return none, err
	}
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return none, err
	}
	root, err := trees.RepoPath(ctx, t.Ledger, row, in.Repo)
	if err != nil {
		return none, err
	}
	further, err := trees.RepositoriesOf(ctx, t.Ledger)
	if err != nil {
		return none, err
	}
	cwd, tree, err := place(root, further, in)
	if err != nil {
		return none, err
	}
	base := in.Base
	if in.Branch != "" {
		if base, err = t.existingBranch(ctx, root, row.Base, tree, name, in); err != nil {
			return none, err
		}
	}
	lead := row.LeadSession
	spawner := lead
	if c.Session != "" {
		spawner = c.Session
	}
	asked := team.SpawnRequest{
		Name: name, Exact: in.Exact, Role: role, Branch: in.Branch, Base: base,
		Spec: in.MemberSpec,
	}
	s := &asked.Spec
	s.Mode, s.Restart, s.MCP, s.Cwd, s.WorktreeMode = mode, restart, servers, cwd, tree
	s.Fresh = in.Fresh || in.Base != "" && in.Branch == ""
	s.Origin = team.Origin{
		ParentSession: lead, SpawnedBy: spawner, Lane: "teammate",
		TMUX: in.TMUX, TMUXPane: in.TMUXPane, Declared: in.Declared,
	}
	return asked, asked.Check()
}

// place returns where a member works: its own worktree of the repository at root by default.
func place(root string, further trees.Repositories, in SpawnIn) (cwd, tree string, err error) {
	if cwd = root; in.Cwd != "" {
		if cwd, err = filepath.Abs(in.Cwd); err != nil {
			return "", "", team.Errorf(team.CodeInvalid, "resolve %q: %w", in.Cwd, err)
		}
	}
	if cwd == "" {
		if cwd, err = os.Getwd(); err != nil {
			return "", "", team.Errorf(team.CodeUnavailable, "find working directory: %w", err)
		}
	}
	switch tree = in.WorktreeMode; tree {
	case "":
		tree = "own"
		if root == "" {
			tree = "none"
		}
		if root == "" && len(further) > 0 && in.Cwd == "" { // a guess might be the wrong repository
			return "", "", team.Errorf(team.CodeInvalid, "which repository is %s to work on?", in.Name).
				WithReason(team.ReasonRepositoryUnknown).WithHint("--repo " + strings.Join(further.Names(), ", --repo ") + ", or --worktree none")
		}
	case "own", "true":
		tree = "own"
		if root == "" {
			return "", "", team.Errorf(team.CodeInvalid, "the team has no repository for a worktree").
				WithHint("create the team with --repo PATH, or spawn with --worktree none")
		}
	case "none", "false":
		tree = "none"
	default:
		if tree, err = filepath.Abs(tree); err != nil {
			return "", "", team.Errorf(team.CodeInvalid, "resolve %q: %w", in.WorktreeMode, err)
		}
		fi, err := os.Stat(tree)
		if err != nil || !fi.IsDir() {
			return "", "", team.Errorf(team.CodeNotFound, "worktree %q is not a directory", tree).
				WithHint("own, none, or the path of a directory")
		}
	}
	if in.Base != "" && tree != "own" {
		return "", "", team.Errorf(team.CodeInvalid, "a base needs a worktree of the member's own")
	}
	return cwd, tree, nil
}

// spawned converts a spawned member for the answer.
func (t *Team) spawned(o ledger.SpawnResult, in team.SpawnRequest) Spawned {
	m := o.Member
	return Spawned{
		Status: "teammate_spawned", TeammateID: m.AgentID, AgentID: m.AgentID, ChildSessionKey: m.SessionKey,
		Name: m.Name, Color: m.Color, TeamName: t.Layout.Key, AgentType: cmp.Or(m.Spec.AgentType, m.Spec.Agent), Model: m.Spec.Model,
		Prompt: m.Spec.Prompt, PlanModeRequired: in.Spec.Mode == team.ModePlan, Renamed: o.Renamed, Again: o.Again,
		PaneID: m.PaneID, Worktree: m.Worktree, Branch: m.Branch, Pane: o.Pane, Warnings: o.Warnings,
	}
}

// joinErrors joins errors; a single one stays as it is, equal ones appear once.
func joinErrors(errs []error) error {
	var list []error
	seen := map[string]bool{}
	for _, err := range errs {
		if err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			list = append(list, err)
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return errors.Join(list...)
}

// Stop stops members: gracefully, or at once with in.Force. Only a person, a leader or an operator
// may.
func (t *Team) Stop(ctx context.Context, c Caller, in team.StopRequest) ([]team.Stopped, error) {
	if err := t.may(ctx, c, OpRule); err != nil {
		return nil, err
	}
	return t.stop(ctx, c, in)
}

// Restart stops members and starts them again.
func (t *Team) Restart(ctx context.Context, c Caller, names []string) ([]Ruled, error) {
	return t.compared(ctx, c, verbRestarted, func() ([]ledger.Member, error) { return t.rule(ctx, c, names, Supervisor.RestartMembers) })
}

// Recover recovers members that were lost with the machine or their terminal.
func (t *Team) Recover(ctx context.Context, c Caller, names []string) ([]team.Recovered, error) {
	if err := t.may(ctx, c, OpRule); err != nil {
		return nil, err
	}
	names, err := t.addresses(names)
	if err != nil {
		return nil, err
	}
	return supervise(ctx, t, func(s Supervisor) ([]team.Recovered, error) { return s.RecoverMembers(ctx, names) })
}

// Pause pauses members, or resumes them.
func (t *Team) Pause(ctx context.Context, c Caller, names []string, on bool) ([]Ruled, error) {
	verb := verbResumed
	if on {
		verb = verbPaused
	}
	return t.compared(ctx, c, verb, func() ([]ledger.Member, error) {
		return t.rule(ctx, c, names, func(s Supervisor, ctx context.Context, names []string) ([]ledger.Member, error) {
			return s.PauseMembers(ctx, names, on)
		})
	})
}

func (t *Team) rule(ctx context.Context, c Caller, names []string,
	f func(Supervisor, context.Context, []string) ([]ledger.Member, error)) ([]ledger.Member, error) {
	if err := t.may(ctx, c, OpRule); err != nil {
		return nil, err
	}
	names, err := t.addresses(names)
	if err != nil {
		return nil, err
	}
	return supervise(ctx, t, func(s Supervisor) ([]ledger.Member, error) { return f(s, ctx, names) })
}

// addresses resolves agent ids to names.
func (t *Team) addresses(names []string) ([]string, error) {
	out := make([]string, len(names))
	for i, n := range names {
		name, err := t.address(n)
		if err != nil {
			return nil, err
		}
		if name == team.LeadName {
			return nil, team.Errorf(team.CodeInvalid, "%s is the lead: it is not supervised", name)
		}
		out[i] = name
	}
	return out, nil
}

// Capture returns a member's screen.
func (t *Team) Capture(ctx context.Context, name string, scrollback int) (string, error) {
	name, err := t.address(name)
	if err != nil {
		return "", err
	}
	return supervise(ctx, t, func(s Supervisor) (string, error) { return s.Capture(ctx, name, scrollback) })
}

// Hide hides a member's screen or shows it again.
func (t *Team) Hide(ctx context.Context, name string, hidden bool) error {
	name, err := t.address(name)
	if err != nil {
		return err
	}
	_, err = supervise(ctx, t, func(s Supervisor) (struct{}, error) { return struct{}{}, s.Hide(ctx, name, hidden) })
	return err
}

// Pane returns the location of a member's screen.
func (t *Team) Pane(ctx context.Context, name string) (team.Pane, error) {
	name, err := t.address(name)
	if err != nil {
		return team.Pane{}, err
	}
	if m, err := t.Ledger.Member(ctx, name); err == nil { // by its former name
		name = m.Name
	}
	st, err := supervise(ctx, t, func(s Supervisor) (ledger.SupervisorStatus, error) { return s.Status(ctx) })
	if err != nil {
		return team.Pane{}, err
	}
	for _, m := range st.Members {
		if m.Name != name {
			continue
		}
		if m.Pane.PaneID == "" {
			return m.Pane, team.Errorf(team.CodeConflict, "%s is not running (%s)", name, m.Observed).
				WithReason(team.ReasonNotRunning).WithHint("teamctl start " + name)
		}
		return m.Pane, nil
	}
	_, err = t.Ledger.Member(ctx, name) // returns the error for an unknown name
	if err == nil {
		err = team.Errorf(team.CodeConflict, "%s is not supervised", name)
	}
	return team.Pane{}, err
}

func lockHeld(path string) (bool, error) { return filelock.IsHeld(path) }
