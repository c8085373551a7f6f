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
	Owner   string          `json:"owner,omitempty"` // current or last owner
	Waits   []string        `json:"waits,omitempty"` // ids of dependencies that are not completed
	Stuck   bool            `json:"stuck,omitempty"` // depends on a failed task
	Attempt int             `json:"attempt"`         // 1 for the first claim
	Began   time.Time       `json:"began,omitzero"`  // zero before the claim
	Ended   time.Time       `json:"ended,omitzero"`  // zero before it is completed or failed
	Note    string          `json:"note,omitempty"`  // why it failed, or what a submitted task waits for
	// DependsOn has the ids of all its dependencies, completed or not.
	DependsOn []string `json:"-"`
}

// Finished reports whether a task is completed or failed.
func (t Task) Finished() bool {
	return t.Status == team.TaskCompleted || t.Status == team.TaskFailed
}

// Active reports whether a task has an owner working on it.
func (t Task) Active() bool {
	return t.Status == team.TaskClaimed || t.Status == team.TaskInProgress
}

// Took returns how long the task has been, or was, in progress; 0 before its claim.
func (t Task) Took(now time.Time) time.Duration {
	switch {
	case t.Began.IsZero():
		return 0
	case !t.Ended.IsZero():
		return t.Ended.Sub(t.Began)
	}
	return now.Sub(t.Began)
}

// Column is a column of a board: tasks in one state.
type Column struct {
	Title string
	Tasks []Task
}

// Columns returns the columns of a board that have tasks, in the order of tasks.
func Columns(tasks []Task) []Column {
	all := []Column{{Title: "in work"}, {Title: "failed"}, {Title: "ready"}, {Title: "stuck"}, {Title: "waiting"}, {Title: "completed"}}
	for _, t := range tasks {
		i := 5
		switch {
		case t.Active():
			i = 0
		case t.Status == team.TaskFailed:
			i = 1
		case t.Stuck:
			i = 3
		case t.Status == team.TaskPending && len(t.Waits) > 0:
			i = 4
		case t.Status == team.TaskPending:
			i = 2
		}
		all[i].Tasks = append(all[i].Tasks, t)
	}
	return slices.DeleteFunc(all, func(c Column) bool { return len(c.Tasks) == 0 })
}

// Member is a member of the team on the screen.
type Member struct {
	Name     string        `json:"name"`
	Color    string        `json:"color"` // one of team.Colors
	Lead     bool          `json:"lead,omitempty"`
	State    team.Observed `json:"state"`
	Activity team.Activity `json:"activity"`
	Since    time.Time     `json:"since,omitzero"`
	Restarts int           `json:"restarts"`
	Note     string        `json:"note,omitempty"`     // why it is in this state
	WaitsFor string        `json:"waitsFor,omitempty"` // if its activity is waiting: "permission 3", "dialog"

	Agent       string    `json:"agent,omitempty"`      // kind of agent
	ActiveSince time.Time `json:"activeSince,omitzero"` // of its activity
	CostKnown   bool      `json:"costKnown,omitempty"`
	Cost        float64   `json:"cost,omitempty"` // in dollars

	Paused bool `json:"paused,omitempty"` // its processes are paused
	Plan   bool `json:"plan,omitempty"`   // in plan mode: it claims no tasks yet

	StalledSince time.Time `json:"stalledSince,omitzero"` // last sign of a working member, if that is long ago

	LimitedTo time.Time `json:"limitedTo,omitzero"` // if its activity is limited: when it continues; zero: unknown
}

// Doing returns what the member does, or what keeps it from working.
func (m Member) Doing() string {
	switch {
	case m.Paused:
		return "paused"
	case m.WaitsFor != "":
		return "waiting (" + m.WaitsFor + ")"
	case m.Activity == team.Limited && !m.LimitedTo.IsZero():
		return "limited until " + m.LimitedTo.Local().Format("15:04")
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
	Text string    `json:"text"` // see Sentence
}

// Snapshot is the team at one moment. Events are in order, newest last.
type Snapshot struct {
	Team string `json:"team"`
	Repo string `json:"repo,omitempty"`
	// Down is since when no supervisor maintains the members' state, zero if one does or none is
	// needed.
	Down time.Time `json:"supervisorDownSince,omitzero"`
	// Silent reports that there is one since Down, but it does not answer.
	Silent  bool     `json:"supervisorSilent,omitempty"`
	Needs   []Need   `json:"needs"`
	Tasks   []Task   `json:"tasks"`
	Members []Member `json:"members"`
	Events  []Event  `json:"events"`
	Spent   Spent    `json:"spent"` // by the whole team
	// Whole has the counts of the whole board if Tasks is only a part of it.
	Whole *Counts `json:"-"`
}

// DownWords says since when no supervisor maintains the members' state; "" if one does.
func DownWords(since time.Time, silent bool) string {
	switch at := since.Local().Format("15:04:05"); {
	case since.IsZero():
		return ""
	case silent:
		return "supervisor has not answered since " + at
	default:
		return "supervisor down since " + at
	}
}

// Counts is a summary of a board: Ready and Waiting are pending, and Stuck are the pending ones
// that depend on a failed task.
type Counts struct{ Done, Failed, Active, Ready, Waiting, Stuck, Total int }

// Count returns the counts of the board.
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

// AgentOf returns the kind of a member's agent, "" if it is not known.
func (s Snapshot) AgentOf(name string) string {
	for _, m := range s.Members {
		if m.Name == name {
			return m.Agent
		}
	}
	return ""
}

// Active returns the tasks in progress, longest first.
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

// TaskOf returns the current task of a member: one that it works on, before one that it has
// submitted.
func (s Snapshot) TaskOf(name string) (found Task, ok bool) {
	for _, t := range s.Tasks {
		if !t.Active() || t.Owner != name {
			continue
		}
		if t.Note == "" {
			return t, true
		}
		if !ok {
			found, ok = t, true
		}
	}
	return found, ok
}
