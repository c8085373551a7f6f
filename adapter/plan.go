package adapter

import (
	"strings"

	"github.com/teamctl/teamctl/team"
)

// Input is what a launch plan may depend on.
type Input struct {
	Layout        team.Layout
	Team          string // key
	Name          string // of the member
	AgentID       string // name@team; made from Name and Team when empty
	Color         string
	Session       string // session key of the member
	ParentSession string // session key or id of who spawned it
	AgentType     string
	Model         string
	Prompt        string
	Mode          team.Mode
	Plan          bool // a plan must be approved before it writes
	Agent         string
	Command       []string
	Dir           string // where it will run
	Env           []string
	Extra         map[string]string // the member's own variables; they win over Env, not over the identity
	Backend       string            // "tmux", "pty", "in-process": decides TERM
	Generation    string            // uuid of the start; the shim puts it into the environment
}

// Output is what to start.
type Output struct {
	Argv            []string
	Env             []string // the whole environment, sorted, each name once
	AnswersShutdown bool
	ReportsReady    bool
}

// Launcher makes launch plans. Exe is the absolute path of the teamctl program,
// which is also the worker.
type Launcher struct {
	Exe string
}

// Plan makes the launch plan of one generation. Errors are CodeInvalid: an
// unknown agent (reason unknown_agent), a command where none is taken or none
// where one is needed (reason bad_command), a variable that no environment can
// hold (reason bad_env).
func (l Launcher) Plan(in Input) (Output, error) {
	if in.Agent == "" {
		in.Agent = Worker
		if len(in.Command) > 0 {
			in.Agent = Command
		}
	}
	if in.AgentID == "" {
		in.AgentID = team.AgentID(in.Name, in.Team)
	}
	k, err := find(in.Agent)
	if err != nil {
		return Output{}, err
	}
	if len(in.Command) > 0 && !k.info.TakesCommand {
		return Output{}, team.Errorf(team.CodeInvalid, "agent %q takes no command", in.Agent).
			WithReason("bad_command").WithHint("leave out --agent to run a command as a teammate")
	}
	argv, err := k.argv(l.Exe, in)
	if err != nil {
		return Output{}, err
	}
	for _, a := range argv {
		if strings.ContainsRune(a, 0) {
			return Output{}, team.Errorf(team.CodeInvalid, "an argument of %s contains a NUL byte", in.AgentID).
				WithReason("bad_command")
		}
	}
	var own map[string]string
	if k.env != nil {
		own = k.env(in)
	}
	env, err := environment(in, own)
	if err != nil {
		return Output{}, err
	}
	return Output{
		Argv:            argv,
		Env:             env,
		AnswersShutdown: k.info.AnswersShutdown,
		ReportsReady:    k.info.ReportsReady,
	}, nil
}
