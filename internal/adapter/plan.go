package adapter

import (
	"strings"

	"github.com/teamctl/teamctl/team"
)

// Input is what a launch plan may depend on: the spec of the member, and what it has
// become since. The variables of the spec win over Environ, not over the identity.
type Input struct {
	team.MemberSpec
	Layout  team.Layout
	Team    string // key
	Name    string // of the member
	AgentID string // name@team; made from Name and Team when empty
	Color   string
	Session string // session key of the member
	Role    team.Role
	Plan    bool        // a plan must be approved before it writes
	Peers   []team.Peer // the other members, for the agent's first context
	Dir     string      // where it will run
	Environ []string    // KEY=VALUE, to build on
	// Git are GIT_AUTHOR_* and GIT_COMMITTER_*, as the person's configuration has them;
	// variables of the same name in Environ and Env win.
	Git         map[string]string
	Generation  string   // uuid of the start; the shim puts it into the environment
	Version     string   // what the CLI says of its version; "" not known
	VersionLate bool     // it has not said it in time, and is asked again while it runs
	GitDirs     []string // directories that it has to write beside Dir: the repository's git directory
	Mint        Mint     // what was chosen for this start
	Resume      string   // id of the conversation to go on with; "" begins one
	Interrupted bool     // that conversation was in the middle of a turn
}

// Mint is what a launch needs and no pure function can choose. Empty fields are
// not to be had.
type Mint struct {
	Conversation string // a new uuid
	Secret       string
	Port         int    // free on loopback
	Socket       string // path for a server of the agent's own, at most 107 bytes
}

// Output is what to start.
type Output struct {
	Argv            []string
	Env             []string // the whole environment, sorted, each name once
	AnswersShutdown bool
	ReportsReady    bool
	Files           []File   `json:",omitempty"` // to be written below the bundle before the start
	Link            *Link    `json:",omitempty"` // how a foreign CLI is reached; nil: it reaches us
	Notes           []string `json:",omitempty"` // what a person should know of this plan
}

// Launcher makes launch plans. Exe is the absolute path of the teamctl program,
// which is also the worker. Custom are the person's own kinds of agent.
type Launcher struct {
	Exe    string
	Custom []Custom
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
	k, err := l.find(in.Agent)
	if err != nil {
		return Output{}, err
	}
	if len(in.Command) > 0 && !k.info.TakesCommand && !k.info.TakesArgs {
		return Output{}, team.Errorf(team.CodeInvalid, "agent %q takes no command", in.Agent).
			WithReason(team.ReasonBadCommand).WithHint("leave out --agent to run a command as a member")
	}
	if in.MCP == team.ServersTeam && (k.cli == nil || len(k.cli.alone) == 0) {
		return Output{}, team.Errorf(team.CodeInvalid, "agent %q cannot be started with the MCP servers of teamctl only", in.Agent).
			WithReason(team.ReasonBadMCP).WithHint("leave out --mcp team: it starts with the servers of its own configuration")
	}
	var c launch
	if k.cli != nil {
		c, err = k.planCLI(l.Exe, in)
	} else {
		c.argv, err = k.argv(l.Exe, in)
	}
	if err != nil {
		return Output{}, err
	}
	for _, a := range c.argv {
		if strings.ContainsRune(a, 0) {
			return Output{}, team.Errorf(team.CodeInvalid, "an argument of %s contains a NUL byte", in.AgentID).
				WithReason(team.ReasonBadCommand)
		}
	}
	if k.env != nil {
		c.env = k.env(in)
	}
	env, err := environment(in, c.env)
	if err != nil {
		return Output{}, err
	}
	out := Output{
		Argv:            c.argv,
		Env:             env,
		AnswersShutdown: k.info.AnswersShutdown,
		ReportsReady:    k.info.ReportsReady,
		Files:           c.files,
		Notes:           c.notes,
	}
	if k.cli != nil {
		out.Link = &c.link
	}
	return out, nil
}
