package adapter

import "github.com/teamctl/teamctl/team"

// ownArgv returns the command of a built-in agent, named by its kind, with the flags that every
// terminal member understands.
func ownArgv(exe string, in Input) ([]string, error) {
	if exe == "" {
		return nil, team.Errorf(team.CodeInternal, "plan %s: the path of teamctl is not known", in.AgentID)
	}
	return append([]string{exe, in.Agent}, flags(in)...), nil
}

// flags returns the facts of a member as flags, in a fixed order.
func flags(in Input) []string {
	out := []string{
		"--agent-id", in.AgentID,
		"--agent-name", in.Name,
		"--team-name", in.Team,
		"--agent-color", in.Color,
		"--parent-session-id", in.ParentSession,
	}
	if in.Plan {
		out = append(out, "--plan-mode-required")
	}
	if in.AgentType != "" {
		out = append(out, "--agent-type", in.AgentType)
	}
	switch in.Mode {
	case "":
	case team.ModeBypass:
		out = append(out, "--dangerously-skip-permissions")
	case team.ModeDefault, team.ModeAcceptEdits, team.ModePlan, team.ModeDelegate, team.ModeDontAsk:
		out = append(out, "--permission-mode", string(in.Mode))
	default: // a mode from a newer team file is passed on for the agent to judge
		out = append(out, "--permission-mode", string(in.Mode))
	}
	if in.Model != "" {
		out = append(out, "--model", in.Model)
	}
	return out
}
