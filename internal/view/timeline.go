package view

import (
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// LaneState is a member's state during a span.
type LaneState string

// States of a lane. LaneUnknown: no supervisor was running, or the member's program reports no
// activity.
const (
	LaneWorking LaneState = "working"
	LaneWaiting LaneState = "waiting" // for a person
	LaneLimited LaneState = "limited"
	LaneIdle    LaneState = "idle"
	LaneDown    LaneState = "down"
	LaneUnknown LaneState = "unknown"
)

// laneStates lists the states in the order of a legend, each with its signs and its colour.
var laneStates = []struct {
	state              LaneState
	sign, ascii, color string
}{
	{LaneWorking, "▓", "#", "#0369a1"}, {LaneWaiting, "?", "?", "#b45309"}, {LaneLimited, "◌", "~", "#7c3aed"},
	{LaneIdle, "·", ".", "#d1d5db"}, {LaneDown, "╌", "_", "#fca5a5"}, {LaneUnknown, "¿", "*", "#f3f4f6"},
}

// Timeline has the members' activities between two times, a lane for each.
type Timeline struct {
	Team string    `json:"team"`
	Run  int64     `json:"run,omitempty"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// History is the time of the oldest event used.
	History time.Time `json:"historyFrom"`
	Lanes   []Lane    `json:"lanes"`
}

// Lane is one member. Spans do not overlap; without a span it was not in the team.
type Lane struct {
	Member string      `json:"member"`
	Spans  []Span      `json:"spans"`
	Tasks  []Stint     `json:"tasks"`
	Totals []LaneTotal `json:"totals"` // of the states that occur
}

// LaneTotal is the total time of a member in one state.
type LaneTotal struct {
	State   LaneState `json:"state"`
	Seconds float64   `json:"seconds"`
}

// In returns the member's total time in a state.
func (l Lane) In(s LaneState) (d time.Duration) {
	for _, x := range l.Spans {
		if x.State == s {
			d += x.To.Sub(x.From)
		}
	}
	return d
}

// Span is a period in one state.
type Span struct {
	State LaneState `json:"state"`
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Why   string    `json:"why,omitempty"` // what it waits for, or why it is down
}

// Stint is an attempt at a task.
type Stint struct {
	Task    string    `json:"task"`
	Subject string    `json:"subject,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	End     string    `json:"end,omitempty"` // completed, failed, released or sent back; "" for the current one
}

// Fact is an event of the ledger, for drawings. Attempt belongs to a task, Why to the end of a
// process.
type Fact struct {
	At                           time.Time
	Who, What, ID, Before, After string
	Attempt                      int
	Why                          string
}

// TimelineIn is the input of a Timeline: the facts in order, the members' current states, and
// since when those are unmaintained, zero for never.
type TimelineIn struct {
	Team     string
	Run      int64
	From, To time.Time
	Facts    []Fact
	Members  []Member
	Subjects map[string]string // of tasks
	Down     time.Time
}

// NewTimeline returns a Timeline. The same input gives the same Timeline.
func NewTimeline(in TimelineIn) Timeline {
	b := &laneBuilder{lanes: map[string]*lanes{}, held: map[string]*heldTask{}, start: in.From}
	if len(in.Facts) > 0 {
		b.start = in.Facts[0].At
	}
	b.before(in.Facts)
	for _, f := range in.Facts {
		if f.At.After(in.To) {
			break
		}
		b.take(f)
	}
	for _, m := range in.Members { // members without remaining history
		if _, ok := b.lanes[m.Name]; !ok && !m.Lead {
			b.lane(m.Name).now(b.start, m.State, m.Activity, "")
		}
	}
	return b.finish(in)
}

// lanes is an unfinished lane: the state since a time.
type lanes struct {
	name     string
	spans    []Span
	tasks    []*Stint
	up       team.Observed
	activity team.Activity
	why      string
	since    time.Time
	there    bool
}

func (l *lanes) state() LaneState {
	if l.up != team.Running {
		return LaneDown
	}
	switch l.activity {
	case team.Working:
		return LaneWorking
	case team.Waiting:
		return LaneWaiting
	case team.Limited:
		return LaneLimited
	case team.Idle:
		return LaneIdle
	case team.ActivityUnknown:
	}
	return LaneUnknown
}

// now closes the current span at a time and begins another.
func (l *lanes) now(at time.Time, up team.Observed, activity team.Activity, why string) {
	l.close(at)
	l.there, l.since, l.up, l.activity, l.why = true, at, up, activity, why
}

func (l *lanes) close(at time.Time) {
	if !l.there || !at.After(l.since) {
		return
	}
	s := Span{l.state(), l.since, at, l.why}
	if n := len(l.spans); n > 0 && l.spans[n-1].State == s.State && l.spans[n-1].Why == s.Why && l.spans[n-1].To.Equal(s.From) {
		l.spans[n-1].To = at
	} else {
		l.spans = append(l.spans, s)
	}
	l.since = at
}

type heldTask struct {
	lane  *lanes
	stint *Stint
}

type laneBuilder struct {
	lanes map[string]*lanes // by the name at the time
	order []*lanes
	held  map[string]*heldTask
	start time.Time
}

func (b *laneBuilder) lane(name string) *lanes {
	l := b.lanes[name]
	if l == nil {
		l = &lanes{name: name}
		b.lanes[name], b.order = l, append(b.order, l)
	}
	return l
}

// before puts members into their state at the beginning of history: the one that their first
// change leaves.
func (b *laneBuilder) before(facts []Fact) {
	type first struct {
		up       team.Observed
		activity team.Activity
		why      string
	}
	known, names := map[string]*first{}, []string{}
	added := map[string]bool{}
	for _, f := range facts {
		if !strings.HasPrefix(f.What, team.MemberEvents) || added[f.ID] || f.ID == "" {
			continue
		}
		switch f.What {
		case team.EventMemberAdded:
			added[f.ID] = known[f.ID] == nil
		case team.EventMemberRenamed:
			added[f.After] = true // the lane of the former name
		case team.EventMemberState, team.EventMemberActivity:
			k := known[f.ID]
			if k == nil {
				k = &first{}
				known[f.ID], names = k, append(names, f.ID)
			}
			if f.What == team.EventMemberState && k.up == "" {
				k.up = team.Observed(f.Before)
			}
			if f.What == team.EventMemberActivity && k.activity == "" {
				k.activity, k.why = activityOf(f.Before)
			}
		}
	}
	for _, name := range names {
		k := known[name]
		if k.up == "" { // only its activity changed, so it was running
			k.up = team.Running
		}
		b.lane(name).now(b.start, k.up, k.activity, k.why)
	}
}

// activityOf parses an activity of the log, "waiting(plan)".
func activityOf(text string) (team.Activity, string) {
	activity, why, _ := strings.Cut(text, "(")
	return team.Activity(activity), strings.TrimSuffix(why, ")")
}

func (b *laneBuilder) take(f Fact) {
	switch f.What {
	case team.EventMemberAdded:
		if f.ID != team.LeadName {
			b.lane(f.ID).now(f.At, team.Observed(f.After), team.ActivityUnknown, "")
		}
	case team.EventMemberRemoved:
		if l := b.lanes[f.ID]; l != nil {
			l.close(f.At)
			l.there = false
		}
	case team.EventMemberRenamed:
		if l := b.lanes[f.Before]; l != nil && f.Before != f.After {
			l.name, b.lanes[f.After] = f.After, l
			delete(b.lanes, f.Before)
		}
	case team.EventMemberState:
		if l := b.lane(f.ID); f.ID != team.LeadName {
			l.now(f.At, team.Observed(f.After), l.activity, f.Why)
		}
	case team.EventMemberActivity:
		if l := b.lane(f.ID); f.ID != team.LeadName {
			up := l.up
			if !l.there {
				up = team.Running
			}
			activity, why := activityOf(f.After)
			l.now(f.At, up, activity, why)
		}
	case team.EventTaskClaimed:
		if b.held[f.ID] != nil {
			b.end(f, "released")
		}
		l := b.lane(f.Who)
		s := &Stint{Task: f.ID, Attempt: f.Attempt, From: f.At}
		l.tasks = append(l.tasks, s)
		b.held[f.ID] = &heldTask{l, s}
	case team.EventTaskCompleted:
		b.end(f, "completed")
	case team.EventTaskFailed, team.EventTaskRetrying:
		b.end(f, "failed")
	case team.EventTaskReleased, team.EventTaskDeleted:
		b.end(f, "released")
	case team.EventTaskSentBack:
		b.end(f, "sent back")
	}
}

// end ends the attempt at a task. An attempt that began before the history begins with it.
func (b *laneBuilder) end(f Fact, how string) {
	h := b.held[f.ID]
	held := f.Before == string(team.TaskClaimed) || f.Before == string(team.TaskInProgress)
	if h == nil && held && f.Who != "" && b.lanes[f.Who] != nil {
		l := b.lanes[f.Who]
		h = &heldTask{l, &Stint{Task: f.ID, From: b.start}}
		l.tasks = append(l.tasks, h.stint)
	}
	if h != nil {
		h.stint.To, h.stint.End = f.At, how
		delete(b.held, f.ID)
	}
}

func (b *laneBuilder) finish(in TimelineIn) Timeline {
	t := Timeline{Team: in.Team, Run: in.Run, From: in.From, To: in.To, History: b.start, Lanes: []Lane{}}
	for _, l := range b.order {
		if !in.Down.IsZero() && l.there && l.state() != LaneDown {
			at := in.Down
			if at.Before(l.since) {
				at = l.since
			}
			l.now(at, team.Running, team.ActivityUnknown, "no supervisor")
		}
		l.close(in.To)
		lane := Lane{Member: l.name, Spans: []Span{}, Tasks: []Stint{}, Totals: []LaneTotal{}}
		for _, s := range l.spans {
			if s.From, s.To = later(s.From, in.From), earlier(s.To, in.To); s.To.After(s.From) {
				lane.Spans = append(lane.Spans, s)
			}
		}
		for _, s := range laneStates {
			if d := lane.In(s.state); d > 0 {
				lane.Totals = append(lane.Totals, LaneTotal{s.state, d.Seconds()})
			}
		}
		for _, s := range l.tasks {
			s.Subject = in.Subjects[s.Task]
			if s.End == "" {
				s.To = in.To
			}
			if s.From, s.To = later(s.From, in.From), earlier(s.To, in.To); !s.To.Before(s.From) {
				lane.Tasks = append(lane.Tasks, *s)
			}
		}
		slices.SortStableFunc(lane.Tasks, func(a, b Stint) int { return a.From.Compare(b.From) })
		if len(lane.Spans)+len(lane.Tasks) > 0 {
			t.Lanes = append(t.Lanes, lane)
		}
	}
	return t
}

// Until returns the timeline up to now: what lasted at its end has lasted since. An earlier time
// changes nothing.
func (t Timeline) Until(now time.Time) Timeline {
	if !now.After(t.To) {
		return t
	}
	end := t.To
	t.To, t.Lanes = now, slices.Clone(t.Lanes)
	for i, l := range t.Lanes {
		l.Spans, l.Tasks = slices.Clone(l.Spans), slices.Clone(l.Tasks)
		for j := range l.Spans {
			if l.Spans[j].To.Equal(end) {
				l.Spans[j].To = now
			}
		}
		for j := range l.Tasks {
			if l.Tasks[j].End == "" {
				l.Tasks[j].To = now
			}
		}
		t.Lanes[i] = l
	}
	return t
}

// tracks assigns rows to the tasks of a lane, in which no two overlap, and returns their number.
func (l Lane) tracks() (row []int, n int) {
	var ends []time.Time
	for _, s := range l.Tasks {
		i := slices.IndexFunc(ends, func(end time.Time) bool { return !end.After(s.From) })
		if i < 0 {
			i, ends = len(ends), append(ends, time.Time{})
		}
		ends[i], row = s.To, append(row, i)
	}
	return row, len(ends)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}
