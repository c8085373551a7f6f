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
	// tasksScanned is how many tasks are looked at for one page, so that a read of a long board is
	// short.
	tasksScanned = 20_000
	// newsRead is how many events of tasks are told one by one.
	newsRead = 1000
)

// TaskPage returns tasks that nobody works on, see view.TaskQuery.
func TaskPage(ctx context.Context, t *tool.Team, q view.TaskQuery) (view.TaskPage, error) {
	out := view.TaskPage{Tasks: []view.Task{}}
	parts := view.TaskParts()
	part, ended, id := view.Place(q.After)
	switch {
	case q.After != "" && !slices.Contains(parts, part):
		return out, team.Errorf(team.CodeInvalid, "no place among the tasks: %q", q.After)
	case q.Part != "":
		parts = []string{q.Part}
	case part != "":
		parts = parts[slices.Index(parts, part):]
	}
	var err error
	if out.Event, err = t.Ledger.LastEvent(ctx); err != nil {
		return out, err
	}
	var keep func(ledger.TaskLine) bool
	if q.Filter != "" {
		members, err := t.Ledger.Members(ctx, false)
		if err != nil {
			return out, err
		}
		agents := map[string]string{}
		for _, m := range members {
			agents[m.Name] = m.Spec.Agent
		}
		keep = func(x ledger.TaskLine) bool {
			v := view.Task{ID: x.ID, Subject: x.Subject, Owner: x.Owner, Status: x.Status, Stuck: x.Stuck, Waits: make([]string, x.Unmet)}
			return view.Matches(v.Words(agents[x.Owner]), q.Filter)
		}
	}
	for i, name := range parts {
		in := ledger.PageIn{Part: ledger.BoardPart(name), Most: q.Most - len(out.Tasks), Scan: tasksScanned - out.Looked, Keep: keep}
		if name == part {
			in.After = ledger.BoardPlace{CompletedAt: ended, Seq: id}
		}
		p, err := t.Ledger.Page(ctx, in)
		if err != nil {
			return out, err
		}
		for _, x := range p.Tasks {
			out.Tasks = append(out.Tasks, Task(x, name == view.PartStuck))
		}
		out.Looked += p.Looked
		switch {
		case !p.Last:
			out.Next = view.PlaceIn(name, p.Next.CompletedAt, p.Next.Seq)
			return out, nil
		case i+1 < len(parts) && (len(out.Tasks) >= q.Most || out.Looked >= tasksScanned):
			out.Next = view.PlaceIn(parts[i+1], 0, 0)
			return out, nil
		}
	}
	return out, nil
}

// TaskNews returns what has become of tasks, and which others have changed, since an event.
func TaskNews(ctx context.Context, t *tool.Team, ids []string, since int64) (view.TaskNews, error) {
	n := view.TaskNews{Event: since}
	list, err := t.Ledger.Events(ctx, since, newsRead+1, ledger.EventFilter{What: team.TaskEvents})
	if err != nil {
		return n, err
	}
	if len(list) > newsRead {
		n.Anew = true
		return n, nil
	}
	wanted := map[string]bool{}
	for _, id := range ids {
		wanted[id] = true
	}
	for _, e := range list {
		wanted[e.ID], n.Event = true, e.Seq
	}
	var all []string
	for id := range wanted {
		all = append(all, id)
	}
	if len(all) == 0 {
		return n, nil
	}
	b, err := t.Ledger.BoardOf(ctx, all)
	if err != nil {
		return n, err
	}
	for _, x := range b.Tasks {
		if wanted[x.ID] {
			n.Tasks = append(n.Tasks, Task(x, b.Stuck[x.ID]))
			delete(wanted, x.ID)
		}
	}
	for id := range wanted {
		n.Gone = append(n.Gone, id)
	}
	slices.Sort(n.Gone)
	return n, nil
}
