package op

import (
	"context"
	"slices"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func memberOps() []Op {
	rule := []tool.Operation{tool.OpRule}
	return []Op{
		with(Op{Name: "TeammateSpawn", Verb: "spawn", Gates: []tool.Operation{tool.OpSpawn}, Long: true,
			Also: map[string]string{"agent_id": "agent", "task": "prompt"}}, spawn),
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

// SpawnIn spawns one or several identical members.
type SpawnIn struct {
	TeamRef
	team.Spawn
}

// SpawnOut is the new member. Of several it is the first, and Members has all.
type SpawnOut struct {
	tool.Spawned
	Members []tool.Spawned `json:"members,omitempty"`
}

func spawn(ctx context.Context, s *Session, in SpawnIn) (SpawnOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (SpawnOut, error) {
		in.Origin = team.Origin{TMUX: s.Place.TMUX, TMUXPane: s.Place.TMUXPane}
		n := max(1, in.Count)
		progress(ctx, 0, n, "starting %s", in.Name)
		list, err := t.Spawn(ctx, c, in.Spawn)
		up := slices.IndexFunc(list, func(m tool.Spawned) bool { return m.Error == "" })
		if err != nil && up < 0 {
			return SpawnOut{}, err
		}
		progress(ctx, n, n, "%s: %s", list[up].Name, list[up].Status)
		if len(list) == 1 {
			return SpawnOut{Spawned: list[0]}, nil
		}
		return SpawnOut{Spawned: list[up], Members: list}, nil // including those that failed
	})
}

// TeammateStopIn stops one member.
type TeammateStopIn struct {
	TeamRef
	Name           string `json:"name" jsonschema:"Name of the member, or its agent id."`
	Reason         string `json:"reason,omitempty" jsonschema:"Why; it is told."`
	Force          bool   `json:"force,omitempty" jsonschema:"End it at once instead of asking it first."`
	Leave          bool   `json:"leave,omitempty" jsonschema:"It also leaves the team; its worktree and branch stay."`
	TimeoutSeconds int    `json:"timeout_seconds,omitempty" jsonschema:"How long it may take to answer before it is ended; 10 if left out."`
}

func teammateStop(ctx context.Context, s *Session, in TeammateStopIn) (StopOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (StopOut, error) {
		wait, err := seconds("timeout_seconds", in.TimeoutSeconds)
		if err != nil {
			return StopOut{}, err
		}
		return stop(ctx, t, c, team.StopRequest{Names: []string{in.Name}, Reason: in.Reason, Force: in.Force, Wait: wait, Remove: in.Leave})
	})
}

func teammateRestart(ctx context.Context, s *Session, in TeammateIn) (MemberInfo, error) {
	return one(ctx, s, in, "restart", func(t *tool.Team, c tool.Caller, names []string) ([]tool.Ruled, error) {
		progress(ctx, 0, 1, "restarting %s", in.Name)
		return t.Restart(ctx, c, names)
	})
}

// TeammateIn names one member.
type TeammateIn struct {
	TeamRef
	Name string `json:"name" jsonschema:"Name of the member, or its agent id."`
}

// one calls an operation on members for a single member.
func one(ctx context.Context, s *Session, in TeammateIn, what string, f func(*tool.Team, tool.Caller, []string) ([]tool.Ruled, error)) (MemberInfo, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (MemberInfo, error) {
		list, err := f(t, c, []string{in.Name})
		if err != nil {
			return MemberInfo{}, err
		}
		if len(list) != 1 {
			return MemberInfo{}, team.Errorf(team.CodeInternal, "%s of %s: %d members came back", what, in.Name, len(list))
		}
		info := memberInfo(list[0].Member)
		info.Outcome = list[0].Outcome
		return info, nil
	})
}

func teammateStart(ctx context.Context, s *Session, in TeammateIn) (MemberInfo, error) {
	return one(ctx, s, in, "start", func(t *tool.Team, c tool.Caller, names []string) ([]tool.Ruled, error) {
		progress(ctx, 0, 1, "starting %s", in.Name)
		return t.Start(ctx, c, names)
	})
}

func teammatePause(ctx context.Context, s *Session, in TeammateIn) (MemberInfo, error) {
	return one(ctx, s, in, "pause", func(t *tool.Team, c tool.Caller, names []string) ([]tool.Ruled, error) {
		return t.Pause(ctx, c, names, true)
	})
}

func teammateResume(ctx context.Context, s *Session, in TeammateIn) (MemberInfo, error) {
	return one(ctx, s, in, "resume", func(t *tool.Team, c tool.Caller, names []string) ([]tool.Ruled, error) {
		return t.Pause(ctx, c, names, false)
	})
}

// TeammateInterruptOut confirms the interrupt.
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

// TeammateRenameIn renames one member.
type TeammateRenameIn struct {
	TeamRef
	Name    string `json:"name" jsonschema:"Name of the member, or its agent id."`
	NewName string `json:"new_name" jsonschema:"The name that it gets."`
	Restart bool   `json:"restart,omitempty" jsonschema:"Stop the member first if it runs, and start it again in its conversation."`
}

func teammateRename(ctx context.Context, s *Session, in TeammateRenameIn) (tool.Renamed, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (tool.Renamed, error) {
		if in.Restart {
			return t.RenameRestart(ctx, c, in.Name, in.NewName)
		}
		return t.Rename(ctx, c, in.Name, in.NewName)
	})
}

// TeammateModeIn sets a permission mode.
type TeammateModeIn struct {
	TeamRef
	Name string    `json:"name" jsonschema:"Name of the member, or team-lead for the lead itself."`
	Mode team.Mode `json:"mode" jsonschema:"The permission mode from now on."`
}

func teammateMode(ctx context.Context, s *Session, in TeammateModeIn) (MemberInfo, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (MemberInfo, error) {
		was, err := t.Member(ctx, in.Name)
		if err != nil {
			return MemberInfo{}, err
		}
		m, err := t.SetMode(ctx, c, in.Name, in.Mode)
		info := memberInfo(m)
		if err == nil && was.Spec.Mode == m.Spec.Mode {
			info.Outcome = tool.AlreadySet
		}
		return info, err
	})
}

// TeammateOutputIn requests a screen.
type TeammateOutputIn struct {
	TeamRef
	Name  string `json:"name" jsonschema:"Name of the member, or its agent id."`
	Lines int    `json:"lines,omitempty" jsonschema:"Lines above the screen to show as well."`
}

// TeammateOutputOut is the content of a member's screen.
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
