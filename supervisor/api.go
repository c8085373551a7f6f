package supervisor

import (
	"context"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Launcher turns a member into what its backend starts: argv, environment and files in its bundle.
type Launcher interface {
	// Plan is pure, except for writing per-session files to the bundle.
	Plan(ctx context.Context, in PlanIn) (Plan, error)
}

// PlanIn is the input of a Launcher.
type PlanIn struct {
	Layout team.Layout
	Team   ledger.TeamRow
	Member ledger.Member
	Dir    string   // working directory
	Env    []string // the base of the environment
	// Members reads the roster, for agents that are told about the other members.
	Members func(ctx context.Context) ([]ledger.Member, error)
	Adopt   bool // the generation is already running: nothing is chosen, asked or written
}

// Plan describes what to start.
type Plan struct {
	Argv []string
	Env  []string // whole environment
	// AnswersShutdown: the agent reads its mailbox and answers a shutdown_request.
	AnswersShutdown bool
	// ReportsReady: the agent reports over the notify socket when it is ready; otherwise it is
	// ready when up.
	ReportsReady bool
	// Channel: a channel of Config.Courier delivers mail and reports states.
	Channel bool
	// Notes are remarks on this plan for a person.
	Notes []string
}
