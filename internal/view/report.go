package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Report describes a part of a team's history: its results, what still needs a person, and its
// course. It is made from the ledger alone, except for Diffs.
type Report struct {
	Team      string    `json:"team"`
	Repo      string    `json:"repo,omitempty"`
	Run       int64     `json:"run,omitempty"`
	RunName   string    `json:"runName,omitempty"`
	Open      bool      `json:"open"` // the run is open
	Counts    Counts    `json:"counts"`
	Needs     []Need    `json:"needs"`
	Timeline  Timeline  `json:"timeline"`
	Graph     *Graph    `json:"graph,omitempty"`
	NoGraph   string    `json:"noGraph,omitempty"` // why there is none
	Durations Durations `json:"durations"`
	Queue     []Depth   `json:"queue"`

	Members   []ReportMember   `json:"members"`
	Tasks     []ReportTask     `json:"tasks"`
	Usage     []UsagePoint     `json:"usage"` // over time
	Approvals []ReportApproval `json:"approvals"`
	Merges    []Merge          `json:"merges"`
	Diffs     []ReportDiff     `json:"diffs"`
	Messages  []Tally          `json:"messages"` // by sender
	Delivered []Tally          `json:"delivered"`
	Deeds     []Event          `json:"deeds"`
	Cut       []string         `json:"cut"` // omitted parts, in words
}

// ReportMember is a member's part of a report.
type ReportMember struct {
	Name     string   `json:"name"`
	Agent    string   `json:"agent,omitempty"`
	Restarts int      `json:"restarts"`
	Ends     []string `json:"ends,omitempty"` // why its processes exited
	Spent    Spent    `json:"spent"`
}

// ReportTask is a task with the results of its last attempt.
type ReportTask struct {
	Task
	DependsOn []string `json:"dependsOn"`
	Log       string   `json:"log,omitempty"`     // last lines of a failed task
	Summary   string   `json:"summary,omitempty"` // by its owner
	Spent     Spent    `json:"spent"`
}

// ReportApproval is a request with its answer.
type ReportApproval struct {
	ID       int64         `json:"id"`
	Kind     string        `json:"kind"`
	State    string        `json:"state"`
	Member   string        `json:"member"`
	Subject  string        `json:"subject"`
	By       string        `json:"by,omitempty"`
	Feedback string        `json:"feedback,omitempty"`
	Asked    time.Time     `json:"asked"`
	Took     time.Duration `json:"took"` // until the answer, or until the end of the report
}

// ReportDiff has a member's changes.
type ReportDiff struct {
	Member string   `json:"member"`
	Base   string   `json:"base,omitempty"`
	Text   string   `json:"text"`
	New    []string `json:"new,omitempty"` // files unknown to git
}

// Tally is a count with a name.
type Tally struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

// Durations are those of finished tasks.
type Durations struct {
	Ended   int           `json:"ended"`
	Median  time.Duration `json:"median"`
	P90     time.Duration `json:"p90"`
	Longest time.Duration `json:"longest"`
	PerHour float64       `json:"perHour"` // completed tasks
}

// Depth is the number of open and done tasks at a time.
type Depth struct {
	At   time.Time `json:"at"`
	Open int       `json:"open"`
	Done int       `json:"done"`
}

// UsagePoint is a member's usage at the end of a turn or a task, as running totals.
type UsagePoint struct {
	At     time.Time `json:"at"`
	Member string    `json:"member"`
	// Session is that of the member, which may have been renamed since; "" in older points.
	Session string `json:"-"`
	Task    string `json:"task,omitempty"`
	Spent   Spent  `json:"spent"`
}

// depths is the number of steps of a queue over time.
const depths = 60

// DurationsOf summarises the tasks that ended in a window.
func DurationsOf(tasks []Task, from, to time.Time) (d Durations) {
	var took []time.Duration
	done := 0
	for _, t := range tasks {
		if !t.Finished() || t.Ended.Before(from) || t.Ended.After(to) {
			continue
		}
		took = append(took, t.Took(to))
		if t.Status == team.TaskCompleted {
			done++
		}
	}
	if len(took) == 0 {
		return d
	}
	slices.Sort(took)
	d = Durations{Ended: len(took), Median: took[len(took)/2], P90: took[(len(took)*9)/10], Longest: took[len(took)-1]}
	if hours := to.Sub(from).Hours(); hours > 0 {
		d.PerHour = float64(done) / hours
	}
	return d
}

// DepthsOf returns the numbers of open and done tasks over a window, from its facts.
func DepthsOf(facts []Fact, from, to time.Time) []Depth {
	out := []Depth{}
	state := map[string]string{} // of tasks: "", "done", and absent
	done := 0
	whole := to.Sub(from)
	if whole <= 0 {
		return out
	}
	point := func() {
		out = append(out, Depth{from.Add(whole * time.Duration(len(out)) / depths), len(state) - done, done})
	}
	due := func(at time.Time) bool { // a point before at
		return len(out) <= depths && from.Add(whole*time.Duration(len(out))/depths).Before(at)
	}
	for _, f := range facts {
		for due(f.At) {
			point()
		}
		if f.At.After(to) {
			break
		}
		was := state[f.ID]
		switch f.What {
		case team.EventTaskCreated, team.EventTaskImported, team.EventTaskRetried:
			if was == "done" {
				done--
			}
			state[f.ID] = "open"
		case team.EventTaskCompleted, team.EventTaskFailed:
			if was != "done" {
				done++
			}
			state[f.ID] = "done"
		case team.EventTaskDeleted:
			if was == "done" {
				done--
			}
			delete(state, f.ID)
		}
	}
	for len(out) <= depths {
		point()
	}
	return out
}

// Apart returns the usage between two totals. Decreasing totals belong to another conversation.
func Apart(before, after Spent) Spent {
	if !before.Known {
		return after
	}
	d := after
	d.Tokens, d.Cost, d.CostKnown = after.Tokens-before.Tokens, after.Cost-before.Cost, after.CostKnown && before.CostKnown
	if d.Tokens < 0 || d.Cost < 0 {
		return after
	}
	return d
}

// totals has the last total of each member, by its session. Older points lack that and count by name.
type totals map[string]Spent

// next returns what a member has used since its last point.
func (t totals) next(p UsagePoint) Spent {
	name, key := "name "+p.Member, "session "+p.Session
	if p.Session == "" {
		key = name
	}
	last, ok := t[key]
	if !ok {
		last = t[name]
		delete(t, name)
	}
	t[key] = p.Spent
	return Apart(last, p.Spent)
}

// UsageIn returns the usage of each member, by its session or, of older points, by its name, and of each
// task in a window, from all points of history, in order. A task gets its member's usage since the previous end.
func UsageIn(points []UsagePoint, from, to time.Time) (members, tasks map[string]Spent) {
	members, tasks = map[string]Spent{}, map[string]Spent{}
	last := totals{}
	add := func(to map[string]Spent, name string, d Spent) {
		was := to[name]
		costKnown := d.CostKnown && (was.CostKnown || !was.Known)
		to[name] = Spent{Name: name, Known: true, Tokens: was.Tokens + d.Tokens, Cost: was.Cost + d.Cost, CostKnown: costKnown}
	}
	for _, p := range points {
		d := last.next(p)
		if p.At.Before(from) || p.At.After(to) {
			continue
		}
		add(members, cmp.Or(p.Session, p.Member), d)
		if p.Task != "" {
			add(tasks, p.Task, d)
		}
	}
	return members, tasks
}

// UsageBy returns the usage of each task, and of each day by its name, from all points of history, in
// order: tasks by what they used, days newest first.
func UsageBy(points []UsagePoint, day func(time.Time) string) (tasks, days []Spent) {
	byTask, byDay := map[string]Spent{}, map[string]Spent{}
	last := totals{}
	add := func(to map[string]Spent, name string, d Spent) {
		was := to[name]
		d.CostKnown = d.CostKnown && (was.CostKnown || !was.Known)
		to[name] = Spent{Name: name, Known: true, Tokens: was.Tokens + d.Tokens, Cost: was.Cost + d.Cost, CostKnown: d.CostKnown}
	}
	for _, p := range points {
		d := last.next(p)
		add(byDay, day(p.At), d)
		if p.Task != "" {
			add(byTask, p.Task, d)
		}
	}
	tasks = slices.SortedFunc(maps.Values(byTask), func(a, b Spent) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(len(a.Name), len(b.Name)), strings.Compare(a.Name, b.Name))
	})
	days = slices.SortedFunc(maps.Values(byDay), func(a, b Spent) int { return strings.Compare(b.Name, a.Name) })
	return tasks, days
}

// And returns the sum of two usages.
func (s Spent) And(o Spent) Spent {
	switch {
	case !s.Known:
		return o
	case !o.Known:
		return s
	}
	s.Tokens, s.Cost, s.CostKnown = s.Tokens+o.Tokens, s.Cost+o.Cost, s.CostKnown && o.CostKnown
	return s
}

// Beyond returns what of a total no part is known for: not Known if the parts are more than that.
func (s Spent) Beyond(parts []Spent) Spent {
	rest := Spent{Known: s.Known, Tokens: s.Tokens, Cost: s.Cost, CostKnown: s.CostKnown}
	for _, p := range parts {
		rest.Tokens, rest.Cost, rest.CostKnown = rest.Tokens-p.Tokens, rest.Cost-p.Cost, rest.CostKnown && p.CostKnown
	}
	if rest.Tokens < 0 || rest.Cost < -0.005 {
		return Spent{}
	}
	rest.Cost = max(0, rest.Cost)
	return rest
}

// Failures reports whether the output of a failed task is in the report.
func (r Report) Failures() bool {
	return slices.ContainsFunc(r.Tasks, func(t ReportTask) bool { return t.Log != "" })
}

// Money formats a cost, "-" if unknown.
func (s Spent) Money() string {
	if !s.CostKnown && s.Cost == 0 {
		return "-"
	}
	sign := ""
	if !s.CostKnown {
		sign = ">"
	}
	return sign + "$" + decimals(s.Cost)
}

// Amount formats a number of tokens, "-" if unknown.
func (s Spent) Amount() string {
	if !s.Known {
		return "-"
	}
	return thousands(s.Tokens)
}

// Tallies counts names, most frequent first.
func Tallies(names []string) []Tally {
	count := map[string]int{}
	for _, n := range names {
		count[n]++
	}
	out := []Tally{}
	for n, c := range count {
		out = append(out, Tally{n, c})
	}
	slices.SortFunc(out, func(a, b Tally) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name)) })
	return out
}
