package adapter

import (
	"strings"

	"github.com/teamctl/teamctl/team"
)

// Input is everything that a launch plan depends on: the spec of the member and its current state.
// The variables of the spec override Environ, but not the identity.
type Input struct {
	team.MemberSpec
	Layout  team.Layout
	Team    string // key
	Name    string // of the member
	AgentID string // name@team; derived from Name and Team if empty
	Color   string
	Session string // session key of the member
	Role    team.Role
	Plan    bool        // plan approval is required before it writes
	Peers   []team.Peer // the other members, for the agent's first context
	Dir     string      // working directory
	Environ []string    // KEY=VALUE, the base of the environment
	// Git has GIT_AUTHOR_* and GIT_COMMITTER_* from the user's configuration; variables of the same
	// name in Environ and Env win.
	Git         map[string]string
	Generation  string   // uuid of the start; the shim adds it to the environment
	Version     string   // version as the CLI prints it; "" if unknown
	VersionLate bool     // it has not printed it in time, and is asked again while it runs
	GitDirs     []string // writable directories beside Dir: the repository's git directory
	Mint        Mint     // values chosen for this start
	Resume      string   // id of the conversation to resume; "" begins one
	Interrupted bool     // that conversation was interrupted during a turn
	small       []string // Launcher.Small
}

// Mint holds the values of a launch that no pure function can choose. An empty field is not
// available.
type Mint struct {
	Conversation string // a new uuid
	Secret       string
	Port         int    // free on loopback
	Socket       string // path for the socket of the agent's own server, at most 107 bytes
}

// Output is what to start.
type Output struct {
	Argv            []string
	Env             []string // the whole environment, sorted, each name once
	AnswersShutdown bool
	ReportsReady    bool
	Files           []File   `json:",omitempty"` // to be written to the bundle before the start
	Link            *Link    `json:",omitempty"` // how a foreign CLI is reached; nil: the agent fetches its mail
	Notes           []string `json:",omitempty"` // remarks on this plan for a person
}

// Launcher makes launch plans. Exe is the absolute path of the teamctl program, which is also the
// worker. Small is the command of the small program that runs hooks before it, nil if there is none
// beside it. Custom are the user's own agent kinds.
type Launcher struct {
	Exe    string
	Small  []string
	Custom []Custom
}

// Plan makes the launch plan of one generation. Errors are CodeInvalid: an unknown agent kind
// (reason unknown_agent), a command that is missing or not accepted (reason bad_command), a
// variable that no environment can hold (reason bad_env).
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
	in.small = l.Small
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
