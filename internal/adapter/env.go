package adapter

import (
	"maps"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/gitenv"
	"github.com/teamctl/teamctl/team"
)

// Variables that only launch plans set; package team has the others.
const (
	EnvAgentType      = "TEAMCTL_AGENT_TYPE"
	EnvModel          = "TEAMCTL_MODEL"
	EnvPermissionMode = "TEAMCTL_PERMISSION_MODE"
	EnvPlanRequired   = "TEAMCTL_PLAN_MODE_REQUIRED"
	EnvPrompt         = "TEAMCTL_PROMPT"
)

// maxEnvString is the kernel's limit for one NAME=VALUE on Linux (MAX_ARG_STRLEN, 32 pages); with
// a longer one exec fails with a message that does not name it.
const maxEnvString = 128 * 1024

// stale are variables of the base environment that describe the terminal or the directory of the
// process that started the supervisor, not the member's.
var stale = map[string]bool{
	"TMUX": true, "TMUX_PANE": true, "STY": true, "WINDOW": true,
	"TERM_PROGRAM": true, "TERM_PROGRAM_VERSION": true, "TERM_SESSION_ID": true, "WINDOWID": true,
	// Set for programs started by Claude Code. A member is not one, even if Claude Code started the
	// supervisor.
	"CLAUDECODE": true, "CLAUDE_CODE_ENTRYPOINT": true, "CLAUDE_CODE_SSE_PORT": true,
	"LINES": true, "COLUMNS": true, "PWD": true, "OLDPWD": true, "SHLVL": true, "_": true,
}

// terminals maps a backend to TERM. screen-256color is the only entry for tmux that every terminfo
// database has (macOS lacks tmux-256color).
var terminals = map[string]string{
	"tmux": "screen-256color",
	"pty":  "xterm-256color",
}

// environment builds the whole environment: base without stale variables and those of a git hook
// that has called teamctl, the terminal, the kind's own, the member's own, and last the identity,
// which nothing may override.
func environment(in Input, own map[string]string) ([]string, error) {
	env := make(map[string]string, len(in.Environ)+16)
	runtimeDir := ""
	for _, kv := range gitenv.Without(in.Environ) {
		name, value, ok := strings.Cut(kv, "=")
		switch {
		case !ok || name == "" || stale[name]:
		case name == team.EnvRuntime:
			runtimeDir = value
		case strings.HasPrefix(name, "TEAMCTL_"):
		default:
			env[name] = value
		}
	}
	if t, ok := terminals[in.Backend]; ok {
		env["TERM"] = t
		env["COLORTERM"] = "truecolor" // tmux reduces it to what the real terminal shows
	}
	if in.Dir != "" {
		env["PWD"] = in.Dir
	}
	maps.Copy(env, own)
	maps.Copy(env, in.Env)
	for name, value := range in.Git {
		if _, set := env[name]; !set {
			env[name] = value
		}
	}
	maps.Copy(env, identity(in, runtimeDir))

	out := make([]string, 0, len(env))
	for name, value := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return nil, team.Errorf(team.CodeInvalid, "variable %q of %s is not valid in an environment", name, in.AgentID).
				WithReason(team.ReasonBadEnv).WithHint("a name has no '=' and neither name nor value a NUL byte")
		}
		if n := len(name) + len(value) + 2; n > maxEnvString {
			return nil, team.Errorf(team.CodeInvalid, "variable %s of %s has %d bytes, the limit is %d", name, in.AgentID, n, maxEnvString).
				WithReason(team.ReasonBadEnv).WithHint("put long text into a file and name the file")
		}
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out, nil
}

// identity returns the variables that identify an agent.
func identity(in Input, runtimeDir string) map[string]string {
	id := map[string]string{
		team.EnvHome:      in.Layout.Home.Dir,
		team.EnvTeam:      in.Team,
		team.EnvAgentID:   in.AgentID,
		team.EnvAgentName: in.Name,
		team.EnvColor:     in.Color,
		team.EnvParent:    in.ParentSession,
		team.EnvNotify:    in.Layout.NotifySocket(),
	}
	if runtimeDir != "" {
		id[team.EnvRuntime] = runtimeDir
	}
	if in.Plan {
		id[EnvPlanRequired] = "1"
	}
	if in.AgentType != "" {
		id[EnvAgentType] = in.AgentType
	}
	if in.Mode != "" {
		id[EnvPermissionMode] = string(in.Mode)
	}
	if in.Model != "" {
		id[EnvModel] = in.Model
	}
	return id
}
