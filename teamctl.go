package teamctl

import (
	"os/exec"

	"github.com/teamctl/teamctl/agent/models"
	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Options configures [New].
type Options struct {
	// Home is the directory that holds the teams (default: $TEAMCTL_HOME, else ~/.teamctl).
	Home string
	// Program is the argv of the teamctl program, which runs as supervisor, shim and
	// built-in worker (default: teamctl in $PATH).
	Program []string
}

// New returns the operations of the command line: create or open a team with it, then
// call the methods of [tool.Team] as [tool.Person] or as the caller that Team.Identify
// returns. A supervisor is started when an operation needs one, and outlives the calling
// program. The error is CodeUnavailable with reason program_not_found if there is no
// teamctl program.
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
			return nil, team.Errorf(team.CodeUnavailable, "find teamctl: %w", err).WithReason(team.ReasonProgramNotFound).
				WithHint("install teamctl, or set Options.Program")
		}
		o.Program = []string{path}
	}
	return &tool.Env{
		Home: home, Dial: control.Dialer(o.Program), Writer: control.Writer, Ping: control.Ping, CheckModel: models.Check(home), Price: models.Price(home), Models: models.List(home),
	}, nil
}
