package supervisor

import (
	"context"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Launcher turns a member into what its backend starts: argv, environment and
// files under its bundle. The rooms adapter and agent implement it.
type Launcher interface {
	// Plan is pure but for writing per-session files below the bundle.
	Plan(ctx context.Context, in PlanIn) (Plan, error)
}

// PlanIn is what a Launcher may know.
type PlanIn struct {
	Layout team.Layout
	Team   ledger.TeamRow
	Member ledger.Member
	Dir    string   // where the agent will run
	Env    []string // the environment to build on
	// Members reads the roster, for agents that are told who is there.
	Members func(ctx context.Context) ([]ledger.Member, error)
	Adopt   bool // the generation runs already: nothing is chosen, asked or written
}

// Plan is what to start.
type Plan struct {
	Argv []string
	Env  []string // whole environment
	// AnswersShutdown: the agent reads its mailbox and answers a shutdown_request.
	AnswersShutdown bool
	// ReportsReady: the agent says ready over the notify socket; else it is ready when up.
	ReportsReady bool
	// Channel: mail gets in, and states come out, by a channel of Config.Courier.
	Channel bool
	// Notes are what a person should know of this plan.
	Notes []string
}

// SpawnOut is the new member, up.
type SpawnOut struct {
	Member   ledger.Member `json:"member"`
	Renamed  bool          `json:"renamed,omitempty"` // the asked name was taken
	Again    bool          `json:"again,omitempty"`   // it has the worktree that an earlier member of its name left
	Pane     team.Pane     `json:"pane"`
	Warnings []string      `json:"warnings,omitempty"`
}

// MemberStatus is a member as the supervisor sees it now.
type MemberStatus struct {
	ledger.Member
	Pane team.Pane `json:"pane"`
	Busy string    `json:"busy,omitempty"` // the step under way: "starting", "stopping"
}

// Status is the supervisor's view of its team.
type Status struct {
	Team      string         `json:"team"`
	PID       int            `json:"pid"`
	Version   string         `json:"version"`
	StartedAt int64          `json:"startedAt"`
	Members   []MemberStatus `json:"members"`
	Backends  []string       `json:"backends"`
}
