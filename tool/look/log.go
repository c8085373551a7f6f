package look

import (
	"context"
	"slices"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

const (
	logKept = 300       // events of a log
	logBack = 64 * 1024 // how far back they are searched
)

// Log returns the newest events of a kind of view.LogKinds, in order. all includes those without a
// sentence.
func Log(ctx context.Context, t *tool.Team, kind string, all bool) ([]view.Event, error) {
	last, err := t.Ledger.LastEvent(ctx)
	if err != nil {
		return nil, err
	}
	out := []view.Event{}
	for to, n := last, int64(1024); to > max(0, last-logBack) && len(out) < logKept; to, n = to-n, 4*n {
		n = min(n, to)
		list, err := t.Ledger.Events(ctx, to-n, int(n), ledger.EventFilter{})
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(e ledger.Event) bool { return e.Seq > to || !view.InLog(kind, e.What) })
		subjects, err := subjectsOf(ctx, t, list)
		if err != nil {
			return nil, err
		}
		out = append(told(subjects, list, all), out...)
	}
	return out[max(0, len(out)-logKept):], nil
}

// subjectsOf returns the tasks that events are about.
func subjectsOf(ctx context.Context, t *tool.Team, list []ledger.Event) (s view.Snapshot, err error) {
	var ids []string
	for _, e := range list {
		if len(e.What) > len(team.TaskEvents) && e.What[:len(team.TaskEvents)] == team.TaskEvents && e.ID != "" {
			ids = append(ids, e.ID)
		}
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) == 0 {
		return s, nil
	}
	tasks, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{IDs: ids})
	for _, x := range tasks {
		s.Tasks = append(s.Tasks, view.Task{ID: x.ID, Subject: x.Subject})
	}
	return s, err
}
