package control

import (
	"os/exec"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Options says where a program's teams are, and which teamctl runs what outlives it.
type Options struct {
	// Home is the directory of the teams; empty: $TEAMCTL_HOME, else ~/.teamctl.
	Home string
	// Program is the argv of teamctl, which becomes supervisor, shim and built-in
	// worker; empty: the teamctl that is found in $PATH.
	Program []string
}

// New returns the operations for another Go program, as the command line has them:
// create or open a team with it, then call the methods of tool.Team as tool.Person()
// or as who Team.Identify says. Supervisors are started when they are needed and
// outlive the program. CodeUnavailable, reason program_not_found: there is no teamctl.
func New(o Options) (*tool.Env, error) {
	home := team.Home{Dir: o.Home}
	if o.Home == "" {
		var err error
		if home, err = team.FindHome(); err != nil {
			return nil, err
		}
	}
	if err := tool.SecurePlaces(home); err != nil {
		return nil, err
	}
	if len(o.Program) == 0 {
		path, err := exec.LookPath("teamctl")
		if err != nil {
			return nil, team.Errorf(team.CodeUnavailable, "find teamctl: %w", err).WithReason("program_not_found").
				WithHint("install teamctl, or say where it is in Options.Program")
		}
		o.Program = []string{path}
	}
	return &tool.Env{Home: home, Dial: Dialer(o.Program), Writer: Writer}, nil
}
