package look

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

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
	out, known := []view.Event{}, subjects{}
	for to, n := last, int64(1024); to > max(0, last-logBack) && len(out) < logKept; to, n = to-n, 4*n {
		n = min(n, to)
		list, err := t.Ledger.Events(ctx, to-n, int(n), ledger.EventFilter{})
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(e ledger.Event) bool { return e.Seq > to || !view.InLog(kind, e.What) })
		if err := known.read(ctx, t, list); err != nil {
			return nil, err
		}
		out = append(told(known, list, all), out...)
	}
	return out[max(0, len(out)-logKept):], nil
}

// subjects has what tasks and requests are about, by the beginning of their events' names with
// their id.
type subjects map[string]string

// subjectsOf returns the subjects of a snapshot.
func subjectsOf(s view.Snapshot) subjects {
	known := subjects{}
	for _, x := range s.Tasks {
		known[team.TaskEvents+x.ID] = x.Subject
	}
	for _, n := range s.Needs {
		if n.Approval != 0 {
			known[team.ApprovalEvents+ledgerID(n.Approval)] = n.Text
		}
	}
	return known
}

// read reads the subjects of a list of events that are not known: tasks that a snapshot does not
// show, and requests that were answered.
func (known subjects) read(ctx context.Context, t *tool.Team, list []ledger.Event) error {
	var tasks []string
	var requests []int64
	for _, e := range list {
		switch {
		case strings.HasPrefix(e.What, team.TaskEvents) && e.ID != "" && known[team.TaskEvents+e.ID] == "":
			tasks = append(tasks, e.ID)
		case strings.HasPrefix(e.What, team.ApprovalEvents) && known[team.ApprovalEvents+e.ID] == "":
			if id, err := strconv.ParseInt(e.ID, 10, 64); err == nil {
				requests = append(requests, id)
			}
		}
	}
	if len(tasks) > 0 {
		list, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{IDs: distinct(tasks)})
		if err != nil {
			return err
		}
		for _, x := range list {
			known[team.TaskEvents+x.ID] = x.Subject
		}
	}
	if len(requests) > 0 {
		list, err := t.Ledger.Approvals(ctx, ledger.ApprovalFilter{IDs: distinct(requests)})
		if err != nil {
			return err
		}
		for _, x := range list {
			known[team.ApprovalEvents+ledgerID(x.ID)] = inShort(x)
		}
	}
	return nil
}

func distinct[T cmp.Ordered](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}
