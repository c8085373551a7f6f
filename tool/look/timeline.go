package look

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Window is a part of a team's history: a run, or the time since a moment. An open run ends now.
type Window struct {
	Run      int64 // 0: none
	From, To time.Time
	Name     string // of the run
	Closed   bool   // the run has ended
}

// RunWindow returns the window of a run, 0 for the current one.
func RunWindow(ctx context.Context, t *tool.Team, id int64, now time.Time) (Window, error) {
	run, err := t.Ledger.RunInfo(ctx, id)
	w := Window{Run: run.ID, Name: run.Name, From: stamp(run.StartedAt), To: now}
	if run.EndedAt != 0 {
		w.To, w.Closed = stamp(run.EndedAt), true
	}
	return w, err
}

// HasTask reports whether a task existed in the window: it was made before its end, and not
// completed before it began.
func (w Window) HasTask(x ledger.Task) bool {
	return !stamp(x.CreatedAt).After(w.To) && (x.CompletedAt == 0 || !stamp(x.CompletedAt).Before(w.From))
}

// Timeline returns what members did in a window.
func Timeline(ctx context.Context, t *tool.Team, w Window) (l view.Timeline, err error) {
	var since time.Time
	if !w.Closed {
		members, err := t.Ledger.Members(ctx, false)
		if err != nil {
			return l, err
		}
		if since, _, err = t.Unmaintained(ctx, members, time.Time{}); err != nil {
			return l, err
		}
	}
	return timeline(ctx, t, w, since)
}

// timeline builds a Timeline from the ledger. Since down the ledger's state is unmaintained.
func timeline(ctx context.Context, t *tool.Team, w Window, down time.Time) (view.Timeline, error) {
	in := view.TimelineIn{Team: t.Layout.Key, Run: w.Run, From: w.From, To: w.To, Subjects: map[string]string{}, Down: down}
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return view.Timeline{}, err
	}
	for _, m := range members {
		in.Members = append(in.Members, view.Member{Name: m.Name, Lead: m.Name == team.LeadName, State: m.Observed, Activity: m.Activity})
	}
	var events []ledger.Event
	for _, what := range []string{team.MemberEvents, team.TaskEvents} {
		list, err := t.Ledger.Events(ctx, 0, 0, ledger.EventFilter{What: what})
		if err != nil {
			return view.Timeline{}, err
		}
		events = append(events, list...)
	}
	slices.SortFunc(events, func(a, b ledger.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, e := range events {
		in.Facts = append(in.Facts, fact(e))
	}
	tasks, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{})
	if err != nil {
		return view.Timeline{}, err
	}
	for _, x := range tasks {
		in.Subjects[x.ID] = x.Subject
	}
	return view.NewTimeline(in), nil
}

func fact(e ledger.Event) view.Fact {
	f := view.Fact{At: stamp(e.At), Who: e.Who, What: e.What, ID: e.ID, Before: e.Before, After: e.After}
	var d struct {
		Attempt  int    `json:"attempt"`
		Reason   string `json:"reason"`
		ExitText string `json:"exitText"`
	}
	if json.Unmarshal(e.Data, &d) == nil { // an event without data still counts
		f.Attempt = d.Attempt
		if f.What == team.EventMemberState {
			f.Why = cmp.Or(d.ExitText, d.Reason)
		}
	}
	return f
}
