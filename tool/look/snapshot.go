package look

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

const (
	// eventsRead is the number of newest events read, eventsKept the number shown: most events do
	// not interest people.
	eventsRead = 200
	eventsKept = 50
)

// Snapshot reads the team once. It asks the supervisor whether it answers.
func Snapshot(ctx context.Context, t *tool.Team) (view.Snapshot, error) {
	silent, err := t.Ask(ctx)()
	if err != nil {
		return view.Snapshot{}, err
	}
	s, _, err := snapshot(ctx, t, 0, silent)
	return s, err
}

// snapshot reads the team, with at most tasks of the tasks not in progress (0: all of them), so
// that a change on a long board does not require reading and sorting all of it. The supervisor has
// not answered since silent, unless that is zero. due is when to read again even without a change,
// 0 for never.
func snapshot(ctx context.Context, t *tool.Team, tasks int, silent time.Time) (s view.Snapshot, due time.Duration, err error) {
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return s, 0, err
	}
	var members []ledger.Member
	if tasks > 0 {
		b, err := t.Ledger.Board(ctx, tasks)
		if err != nil {
			return s, 0, err
		}
		if members, err = t.Ledger.Members(ctx, false); err != nil {
			return s, 0, err
		}
		s = filled(row.Name, b.Tasks, b.Stuck, members)
		s.Whole = numbers(b)
	} else {
		p, err := t.Progress(ctx)
		if err != nil {
			return s, 0, err
		}
		members = p.Members
		s = Progress(row.Name, p)
	}
	s.Repo = row.Repo
	now := time.Now()
	for i, m := range members {
		s.Members[i].StalledSince = state.Stalled(t.Layout, m, now)
	}
	if s.Down, s.Silent, err = t.Unmaintained(ctx, members, silent); err != nil {
		return s, 0, err
	}
	u, err := t.Usage(ctx)
	if err != nil {
		return s, 0, err
	}
	s.Spent = spent(u.Team)
	for i := range s.Members {
		for _, x := range u.Members {
			if x.Name == s.Members[i].Name {
				s.Members[i].Cost, s.Members[i].CostKnown = x.CostUSD, x.CostKnown || x.CostUSD > 0
			}
		}
	}
	if s.Needs, err = needs(ctx, t, members, s, u, now); err != nil {
		return s, 0, err
	}
	waitsFor(&s, members)
	if s.Events, err = events(ctx, t, s); err != nil {
		return s, 0, err
	}
	return s, sooner(state.StallDue(t.Layout, members, now), laterDue(s.Needs, now)), nil
}

// Progress converts a board to a Snapshot, without events and needs.
func Progress(name string, p tool.Progress) view.Snapshot {
	if p.Part != nil {
		s := filled(name, p.Tasks, p.Part.Stuck, p.Members)
		s.Whole = numbers(*p.Part)
		return s
	}
	return filled(name, p.Tasks, stuck(p.Tasks), p.Members)
}

// waitsFor sets what each waiting member waits for, from the needs. A dialog is named as in the
// member's row, if named there.
func waitsFor(s *view.Snapshot, members []ledger.Member) {
	for i, m := range s.Members {
		if m.State != team.Running || m.Activity != team.Waiting {
			continue
		}
		for _, n := range s.Needs {
			if n.Member != m.Name || n.Approval == 0 && n.Kind != view.NeedDialog {
				continue
			}
			s.Members[i].WaitsFor = n.Name() // a dialog comes last: it blocks the member even if there are requests
			if w := members[i].WaitsFor; n.Kind == view.NeedDialog && w != "" {
				s.Members[i].WaitsFor = string(w)
			}
		}
	}
}

// events returns the newest events of interest to people, in order.
func events(ctx context.Context, t *tool.Team, s view.Snapshot) ([]view.Event, error) {
	last, err := t.Ledger.LastEvent(ctx)
	if err != nil {
		return nil, err
	}
	list, err := t.Ledger.Events(ctx, max(0, last-eventsRead), 0, ledger.EventFilter{})
	if err != nil {
		return nil, err
	}
	known := subjectsOf(s)
	if err := known.read(ctx, t, list); err != nil {
		return nil, err
	}
	out := told(known, list, false)
	return out[max(0, len(out)-eventsKept):], nil
}

// told returns the events of a list that interest people, as sentences; all includes the events
// without one.
func told(subjects subjects, list []ledger.Event, all bool) []view.Event {
	out := []view.Event{}
	for _, e := range list {
		who := view.By(e.Who, e.Via)
		h := view.Happened{Who: who, What: e.What, ID: shortID(e.ID), Before: e.Before, After: e.After}
		if e.Via != "" {
			h.Who += ","
		}
		for _, kind := range []string{team.TaskEvents, team.ApprovalEvents} {
			if len(e.What) > len(kind) && e.What[:len(kind)] == kind {
				h.Subject = subjects[kind+e.ID]
			}
		}
		text := view.Sentence(h)
		if text == "" && all {
			text = view.Protocol(h)
		}
		if text != "" {
			out = append(out, view.Event{At: stamp(e.At), Who: who, What: e.What, ID: h.ID, Text: text})
		}
	}
	return out
}

func filled(name string, tasks []ledger.Task, stuck map[string]bool, members []ledger.Member) view.Snapshot {
	s := view.Snapshot{Team: name, Tasks: []view.Task{}, Members: []view.Member{}, Events: []view.Event{}, Needs: []view.Need{}}
	for _, t := range tasks {
		s.Tasks = append(s.Tasks, Task(t, stuck[t.ID]))
	}
	for _, m := range members {
		s.Members = append(s.Members, view.Member{
			Name: m.Name, Color: m.Color, Lead: m.Name == team.LeadName, State: m.Observed, Activity: m.Activity,
			Agent: m.Spec.Agent, ActiveSince: stamp(m.ActivityAt), Since: stamp(Since(m)), Restarts: m.Restarts, Note: Why(m),
			Paused: Paused(m), Plan: m.Name != team.LeadName && m.Spec.Mode == team.ModePlan, LimitedTo: stamp(m.LimitedTo),
		})
	}
	return s
}

// Tasks converts tasks for screens; whether one is stuck is determined among them.
func Tasks(list []ledger.Task) []view.Task {
	behind := stuck(list)
	out := make([]view.Task, len(list))
	for i, t := range list {
		out[i] = Task(t, behind[t.ID])
	}
	return out
}

// Task converts a task for screens.
func Task(t ledger.Task, stuck bool) view.Task {
	v := view.Task{
		ID: t.ID, Subject: t.Subject, Status: t.Status, Owner: t.OwnerName, Waits: t.BlockedBy,
		Stuck: stuck, Attempt: t.Attempt, Began: stamp(t.StartedAt), Ended: stamp(t.CompletedAt),
		DependsOn: t.DependsOn,
	}
	if v.Began.IsZero() {
		v.Began = stamp(t.ClaimedAt)
	}
	if t.ActiveForm != "" && v.Active() {
		v.Subject = t.ActiveForm
	}
	if t.Status == team.TaskFailed && t.Result != nil {
		v.Note = Failure(*t.Result)
	}
	if v.Active() {
		v.Note = HandedIn(t)
	}
	return v
}

// numbers returns the counts of the whole board.
func numbers(b ledger.Board) *view.Counts {
	c := b.Counts
	return &view.Counts{
		Done: c.Completed, Failed: c.Failed, Active: c.Claimed + c.InProgress, Ready: b.Free,
		Waiting: c.Pending - b.Free - c.Stuck, Stuck: c.Stuck, Total: c.Total(),
	}
}

// stuck returns the pending tasks that depend, directly or not, on a failed one.
func stuck(tasks []ledger.Task) map[string]bool {
	byID := make(map[string]ledger.Task, len(tasks))
	for _, t := range tasks {
		byID[t.ID] = t
	}
	memo := map[string]bool{}
	var visit func(ledger.Task) bool
	visit = func(t ledger.Task) bool {
		if known, ok := memo[t.ID]; ok {
			return known
		}
		memo[t.ID] = false
		for _, id := range t.BlockedBy {
			dep := byID[id]
			if dep.Status == team.TaskFailed || dep.Status == team.TaskPending && visit(dep) {
				memo[t.ID] = true
				break
			}
		}
		return memo[t.ID]
	}
	for _, t := range tasks {
		if t.Status == team.TaskPending {
			visit(t)
		}
	}
	return memo
}

// shortID returns an id for people: of a uuid the first block is enough.
func shortID(id string) string {
	if len(id) == 36 && id[8] == '-' {
		return id[:8]
	}
	return id
}
