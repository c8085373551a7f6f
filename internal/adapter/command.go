package adapter

import (
	"slices"

	"github.com/teamctl/teamctl/team"
)

// commandArgv returns the command as given: it would take added flags for its own.
func commandArgv(_ string, in Input) ([]string, error) {
	if len(in.Command) == 0 || in.Command[0] == "" {
		return nil, team.Errorf(team.CodeInvalid, "%s has no command", in.AgentID).
			WithReason(team.ReasonBadCommand).WithHint("teamctl spawn " + in.Name + " -- COMMAND ARG...")
	}
	return slices.Clone(in.Command), nil
}

// commandEnv passes the prompt in the environment, the only way into a foreign command.
func commandEnv(in Input) map[string]string {
	if in.Prompt == "" {
		return nil
	}
	return map[string]string{EnvPrompt: in.Prompt}
}
