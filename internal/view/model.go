package view

import (
	"slices"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Task is one task on the screen.
type Task struct {
	ID      string          `json:"id"`
	Subject string          `json:"subject"`
	Status  team.TaskStatus `json:"status"`
	Owner   string          `json:"owner,omitempty"` // name of the member that has or had it
	Waits   []string        `json:"waits,omitempty"` // ids of the dependencies that are not completed
	Stuck   bool            `json:"stuck,omitempty"` // behind a failed task
	Attempt int             `json:"attempt"`         // 1 for the first claim
	Began   time.Time       `json:"began,omitzero"`  // zero before the claim
	Ended   time.Time       `json:"ended,omitzero"`  // zero before it is completed or failed
	Note    string          `json:"note,omitempty"`  // why it failed; what one waits for that is handed in
}

// Finished reports a task that is completed or failed.
func (t Task) Finished() bool {
	return t.Status == team.TaskCompleted || t.Status == team.TaskFailed
}

// Active reports a task that somebody holds.
func (t Task) Active() bool {
	return t.Status == team.TaskClaimed || t.Status == team.TaskInProgress
}

// Took is how long the task has been, or was, in work; 0 before its claim.
func (t Task) Took(now time.Time) time.Duration {
	switch {
	case t.Began.IsZero():
		return 0
	case !t.Ended.IsZero():
		return t.Ended.Sub(t.Began)
	}
	return now.Sub(t.Began)
}

// Member is one member of the team on the screen.
type Member struct {
	Name     string        `json:"name"`
	Color    string        `json:"color"` // one of team.Colors
	Lead     bool          `json:"lead,omitempty"`
	State    team.Observed `json:"state"`
	Activity team.Activity `json:"activity"`
	Since    time.Time     `json:"since,omitzero"`
	Restarts int           `json:"restarts"`
	Note     string        `json:"note,omitempty"`     // why it is in this state
	WaitsFor string        `json:"waitsFor,omitempty"` // where its activity is waiting: "permission 3", "dialog"

	Agent       string    `json:"agent,omitempty"`      // kind of agent
	ActiveSince time.Time `json:"activeSince,omitzero"` // of its activity
	CostKnown   bool      `json:"costKnown,omitempty"`
	Cost        float64   `json:"cost,omitempty"` // in dollars

	Paused bool `json:"paused,omitempty"` // its processes stand still
	Plan   bool `json:"plan,omitempty"`   // in plan mode: it takes no tasks yet

	StalledSince time.Time `json:"stalledSince,omitzero"` // last sign of one that works, where that is long ago
}

// Doing is what the member does, or what keeps it from doing anything.
func (m Member) Doing() string {
	switch {
	case m.Paused:
		return "paused"
	case m.WaitsFor != "":
		return "waiting (" + m.WaitsFor + ")"
	case m.Plan:
		return string(m.Activity) + ", plan mode"
	}
	return string(m.Activity)
}

// Event is one line of the log.
type Event struct {
	At   time.Time `json:"at"`
	Who  string    `json:"who"`
	What string    `json:"what"`
	ID   string    `json:"id"`
	Text string    `json:"text"` // a sentence, see Sentence
}

// Snapshot is the team at one moment. Events are in order, the newest last.
type Snapshot struct {
	Team string `json:"team"`
	Repo string `json:"repo,omitempty"`
	// Down is since when no supervisor stands behind what is said of the members, zero
	// where one does or none is needed.
	Down    time.Time `json:"supervisorDownSince,omitzero"`
	Needs   []Need    `json:"needs"`
	Tasks   []Task    `json:"tasks"`
	Members []Member  `json:"members"`
	Events  []Event   `json:"events"`
	Spent   Spent     `json:"spent"` // by the whole team
	// Whole counts the board where Tasks are only those of it that a screen can show.
	Whole *Counts `json:"-"`
}

// Counts is a board in numbers: Ready and Waiting are pending, and Stuck are those
// pending ones that wait for what has failed.
type Counts struct{ Done, Failed, Active, Ready, Waiting, Stuck, Total int }

// Count returns the board in numbers.
func (s Snapshot) Count() Counts {
	if s.Whole != nil {
		return *s.Whole
	}
	c := Counts{Total: len(s.Tasks)}
	for _, t := range s.Tasks {
		switch t.Status {
		case team.TaskCompleted:
			c.Done++
		case team.TaskFailed:
			c.Failed++
		case team.TaskClaimed, team.TaskInProgress:
			c.Active++
		case team.TaskPending:
			switch {
			case t.Stuck:
				c.Stuck++
			case len(t.Waits) > 0:
				c.Waiting++
			default:
				c.Ready++
			}
		}
	}
	return c
}

// Active returns the tasks in work, the longest first.
func (s Snapshot) Active() []Task {
	var out []Task
	for _, t := range s.Tasks {
		if t.Active() {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b Task) int { return a.Began.Compare(b.Began) })
	return out
}

// TaskOf returns the task that a member works on.
func (s Snapshot) TaskOf(name string) (Task, bool) {
	for _, t := range s.Tasks {
		if t.Active() && t.Owner == name {
			return t, true
		}
	}
	return Task{}, false
}
