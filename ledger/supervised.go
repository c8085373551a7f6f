package ledger

import "github.com/teamctl/teamctl/team"

// SpawnResult is a member that a supervisor has spawned, which is up.
type SpawnResult struct {
	Member   Member    `json:"member"`
	Renamed  bool      `json:"renamed,omitempty"` // the requested name was in use
	Again    bool      `json:"again,omitempty"`   // it reuses the worktree left by an earlier member of its name
	Pane     team.Pane `json:"pane"`
	Warnings []string  `json:"warnings,omitempty"`
}

// SupervisedMember is a supervisor's current view of a member.
type SupervisedMember struct {
	Member
	Pane team.Pane `json:"pane"`
	Busy string    `json:"busy,omitempty"` // the current step: "starting", "stopping"
}

// SupervisorStatus is a supervisor's view of its team.
type SupervisorStatus struct {
	Team      string             `json:"team"`
	PID       int                `json:"pid"`
	Version   string             `json:"version"`
	StartedAt int64              `json:"startedAt"`
	Members   []SupervisedMember `json:"members"`
	Backends  []string           `json:"backends"`
}
