package adapter

import (
	"slices"

	"github.com/teamctl/teamctl/team"
)

// commandArgv is the command as given: flags of ours would be taken for its own.
func commandArgv(_ string, in Input) ([]string, error) {
	if len(in.Command) == 0 || in.Command[0] == "" {
		return nil, team.Errorf(team.CodeInvalid, "%s has no command", in.AgentID).
			WithReason(team.ReasonBadCommand).WithHint("teamctl spawn " + in.Name + " -- COMMAND ARG...")
	}
	return slices.Clone(in.Command), nil
}

// commandEnv carries the prompt, which has no other way into a foreign command.
func commandEnv(in Input) map[string]string {
	if in.Prompt == "" {
		return nil
	}
	return map[string]string{EnvPrompt: in.Prompt}
}
