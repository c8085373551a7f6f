package op

import (
	"context"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func memberOps() []Op {
	rule := []tool.Operation{tool.OpRule}
	return []Op{
		with(Op{Name: "TeammateSpawn", Verb: "spawn", Gates: []tool.Operation{tool.OpSpawn}, Long: true}, spawn),
		with(Op{Name: "TeammateStop", Verb: "stop", Gates: rule, Destructive: true, Idempotent: true, Long: true}, teammateStop),
		with(Op{Name: "TeammateRestart", Verb: "restart", Gates: rule, Destructive: true, Long: true}, teammateRestart),
		with(Op{Name: "TeammateStart", Verb: "start", Gates: rule, Idempotent: true, Long: true}, teammateStart),
		with(Op{Name: "TeammatePause", Verb: "pause", Gates: rule, Idempotent: true}, teammatePause),
		with(Op{Name: "TeammateResume", Verb: "resume", Gates: rule, Idempotent: true}, teammateResume),
		with(Op{Name: "TeammateInterrupt", Verb: "interrupt", Gates: rule}, teammateInterrupt),
		with(Op{Name: "TeammateRename", Verb: "rename", Gates: rule, Idempotent: true}, teammateRename),
		with(Op{Name: "TeammateMode", Verb: "mode", Gates: []tool.Operation{tool.OpMode}, Idempotent: true}, teammateMode),
		with(Op{Name: "TeammateOutput", Verb: "capture", ReadOnly: true, Idempotent: true}, teammateOutput),
	}
}

// SpawnIn (R26-R28, R110).
type SpawnIn struct {
	TeamRef
	Name      string            `json:"name" jsonschema:"Name of the member: others address it by this."`
	AgentID   string            `json:"agent_id,omitempty" jsonschema:"Kind of agent to start, for example worker (the built-in one, the default) or command."`
	Command   []string          `json:"command,omitempty" jsonschema:"Program and arguments, for a member that is any command."`
	Task      string            `json:"task,omitempty" jsonschema:"First message to the agent."`
	AgentType string            `json:"agent_type,omitempty" jsonschema:"Type or role, handed to the agent, for example reviewer."`
	Model     string            `json:"model,omitempty" jsonschema:"Model for agents that have one."`
	Mode      team.Mode         `json:"mode,omitempty" jsonschema:"Permission mode; plan makes it ask for approval of a plan first."`
	Bypass    bool              `json:"dangerously_skip_permissions,omitempty" jsonschema:"Must be true as well where mode is bypassPermissions."`
	Role      string            `json:"role,omitempty" jsonschema:"executor (default), reviewer, observer, leader or operator."`
	Restart   string            `json:"restart,omitempty" jsonschema:"never, on-failure (default) or always."`
	Backend   string            `json:"backend,omitempty" jsonschema:"Where it runs: auto (default), tmux, pty or in-process."`
	Layout    team.PaneLayout   `json:"layout,omitempty" jsonschema:"In tmux: split, window or session."`
	Worktree  string            `json:"worktree,omitempty" jsonschema:"own (default where the team has a repository), none, or the path of a directory."`
	Repo      string            `json:"repo,omitempty" jsonschema:"Name of a further repository of the team to work on."`
	Base      string            `json:"base,omitempty" jsonschema:"Revision that its branch starts from."`
	Branch    string            `json:"branch,omitempty" jsonschema:"Existing branch to work on, instead of a new one."`
	Cwd       string            `json:"cwd,omitempty" jsonschema:"Directory to run in without a worktree of its own."`
	Env       map[string]string `json:"env,omitempty" jsonschema:"Further environment variables."`
	Asks      bool              `json:"asks,omitempty" jsonschema:"It answers shutdown requests: ask it before it is ended, even if it has read no mail."`
	MCP       team.Servers      `json:"mcp,omitempty" jsonschema:"MCP servers that it starts with: all (default), those of its program's configuration as well, or team, teamctl's only."`
	Confine   bool              `json:"confine,omitempty" jsonschema:"For agent llm: what its tools start can write in its worktree, the git directory and a temporary directory only."`
	Exact     bool              `json:"exact,omitempty" jsonschema:"Fail where the name is taken, instead of taking NAME-2."`
}

func spawn(ctx context.Context, s *Session, in SpawnIn) (tool.Spawned, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (tool.Spawned, error) {
		ask := tool.SpawnIn{
			Name: in.Name, Agent: in.AgentID, Command: in.Command, Backend: in.Backend, Layout: in.Layout, Prompt: in.Task,
			AgentType: in.AgentType, Model: in.Model, Mode: string(in.Mode), Bypass: in.Bypass, Role: in.Role, Restart: in.Restart,
			Env: in.Env, Repo: in.Repo, Worktree: in.Worktree, Cwd: in.Cwd, Base: in.Base, Branch: in.Branch, Asks: in.Asks, MCP: string(in.MCP), Confine: in.Confine, Exact: in.Exact, Place: s.Place,
		}
		ask.Place.Layout = in.Layout
		progress(ctx, 0, 1, "starting %s", in.Name)
		list, err := t.Spawn(ctx, c, ask)
		if err != nil {
			return tool.Spawned{}, err
		}
		progress(ctx, 1, 1, "%s: %s", list[0].Name, list[0].Status)
		return list[0], nil
	})
}

// TeammateStopIn stops one member.
type TeammateStopIn struct {
	TeamRef
	Name           string `json:"name" jsonschema:"Name of the member, or its agent id."`
	Reason         string `json:"reason,omitempty" jsonschema:"Why; it is told."`
	Force          bool   `json:"force,omitempty" jsonschema:"End it at once instead of asking it first."`
	TimeoutSeconds int    `json:"timeout_seconds,omitempty" jsonschema:"How long it may take to answer before it is ended; 10 if left out."`
}

func teammateStop(ctx context.Context, s *Session, in TeammateStopIn) (StopOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (StopOut, error) {
		wait, err := seconds("timeout_seconds", in.TimeoutSeconds)
		if err != nil {
			return StopOut{}, err
		}
		return stop(ctx, t, c, team.StopRequest{Names: []string{in.Name}, Reason: in.Reason, Force: in.Force, Wait: wait})
	})
}

func teammateRestart(ctx context.Context, s *Session, in TeammateIn) (MemberInfo, error) {
	return one(ctx, s, in, "restart", func(t *tool.Team, c tool.Caller, names []string) ([]ledger.Member, error) {
		progress(ctx, 0, 1, "restarting %s", in.Name)
		return t.Restart(ctx, c, names)
	})
}

// TeammateIn names one member.
type TeammateIn struct {
	TeamRef
	Name string `json:"name" jsonschema:"Name of the member, or its agent id."`
}

// one calls an operation on members for a single one.
func one(ctx context.Context, s *Session, in TeammateIn, what string, f func(*tool.Team, tool.Caller, []string) ([]ledger.Member, error)) (MemberInfo, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (MemberInfo, error) {
		list, err := f(t, c, []string{in.Name})
		if err != nil {
			return MemberInfo{}, err
		}
		if len(list) != 1 {
			return MemberInfo{}, team.Errorf(team.CodeInternal, "%s of %s: %d members came back", what, in.Name, len(list))
		}
		return memberInfo(list[0]), nil
	})
}

func teammateStart(ctx context.Context, s *Session, in TeammateIn) (MemberInfo, error) {
	return one(ctx, s, in, "start", func(t *tool.Team, c tool.Caller, names []string) ([]ledger.Member, error) {
		progress(ctx, 0, 1, "starting %s", in.Name)
		return t.Start(ctx, c, names)
	})
}

func teammatePause(ctx context.Context, s *Session, in TeammateIn) (MemberInfo, error) {
	return one(ctx, s, in, "pause", func(t *tool.Team, c tool.Caller, names []string) ([]ledger.Member, error) {
		return t.Pause(ctx, c, names, true)
	})
}

func teammateResume(ctx context.Context, s *Session, in TeammateIn) (MemberInfo, error) {
	return one(ctx, s, in, "resume", func(t *tool.Team, c tool.Caller, names []string) ([]ledger.Member, error) {
		return t.Pause(ctx, c, names, false)
	})
}

// TeammateInterruptOut says that the interrupt was given.
type TeammateInterruptOut struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

func teammateInterrupt(ctx context.Context, s *Session, in TeammateIn) (TeammateInterruptOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (TeammateInterruptOut, error) {
		if err := t.Interrupt(ctx, c, in.Name); err != nil {
			return TeammateInterruptOut{}, err
		}
		return TeammateInterruptOut{Success: true, Message: "Interrupted " + in.Name}, nil
	})
}

// TeammateRenameIn gives one member another name.
type TeammateRenameIn struct {
	TeamRef
	Name    string `json:"name" jsonschema:"Name of the member, or its agent id."`
	NewName string `json:"new_name" jsonschema:"The name that it gets."`
}

func teammateRename(ctx context.Context, s *Session, in TeammateRenameIn) (tool.Renamed, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (tool.Renamed, error) {
		return t.Rename(ctx, c, in.Name, in.NewName)
	})
}

// TeammateModeIn sets a permission mode (R155).
type TeammateModeIn struct {
	TeamRef
	Name string    `json:"name" jsonschema:"Name of the member, or team-lead for the lead itself."`
	Mode team.Mode `json:"mode" jsonschema:"The permission mode from now on."`
}

func teammateMode(ctx context.Context, s *Session, in TeammateModeIn) (MemberInfo, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (MemberInfo, error) {
		m, err := t.SetMode(ctx, c, in.Name, in.Mode)
		return memberInfo(m), err
	})
}

// TeammateOutputIn asks for a screen.
type TeammateOutputIn struct {
	TeamRef
	Name  string `json:"name" jsonschema:"Name of the member, or its agent id."`
	Lines int    `json:"lines,omitempty" jsonschema:"Lines above the screen to show as well."`
}

// TeammateOutputOut is what a member's screen shows.
type TeammateOutputOut struct {
	Name   string `json:"name"`
	Output string `json:"output"`
}

func teammateOutput(ctx context.Context, s *Session, in TeammateOutputIn) (TeammateOutputOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, _ tool.Caller) (TeammateOutputOut, error) {
		if in.Lines < 0 {
			return TeammateOutputOut{}, team.Errorf(team.CodeInvalid, "lines must be 0 or more").WithReason(team.ReasonInput)
		}
		m, err := t.Member(ctx, in.Name)
		if err != nil {
			return TeammateOutputOut{}, err
		}
		text, err := t.Capture(ctx, m.Name, in.Lines)
		return TeammateOutputOut{Name: m.Name, Output: text}, err
	})
}
