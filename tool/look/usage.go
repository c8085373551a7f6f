package look

import (
	"context"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// usageTasks is how many tasks are shown with what they used.
const usageTasks = 50

// Points are the totals of usage at the ends of turns and tasks, as far as they were read.
type Points struct {
	mu   sync.Mutex
	upTo int64 // event
	list []view.UsagePoint
}

// read reads the points since the last time, and returns all.
func (p *Points) read(ctx context.Context, t *tool.Team) ([]view.UsagePoint, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, err := t.Ledger.LastEvent(ctx)
	if err != nil {
		return nil, err
	}
	events, err := t.Ledger.Events(ctx, p.upTo, 0, ledger.EventFilter{What: team.EventUsageCounted})
	if err != nil {
		return nil, err
	}
	p.upTo = max(p.upTo, last)
	for _, e := range events {
		p.upTo = max(p.upTo, e.Seq)
		p.list = append(p.list, usagePoint(e))
	}
	return p.list[:len(p.list):len(p.list)], nil
}

// usageBy adds the usage of tasks and days.
func usageBy(ctx context.Context, t *tool.Team, p *Points, u *view.Usage) error {
	if p == nil {
		p = new(Points)
	}
	points, err := p.read(ctx, t)
	if err != nil {
		return err
	}
	u.Tasks, u.Days = view.UsageBy(points, func(at time.Time) string { return at.Local().Format("2006-01-02") })
	u.Rest = u.Team.Beyond(u.Tasks)
	if n := len(u.Tasks) - usageTasks; n > 0 {
		u.Tasks, u.More = u.Tasks[:usageTasks], n
	}
	return named(ctx, t, u.Tasks)
}

// named adds the subjects of tasks. Those of deleted ones are not known any more.
func named(ctx context.Context, t *tool.Team, list []view.Spent) error {
	if len(list) == 0 {
		return nil
	}
	ids := make([]string, len(list))
	for i, x := range list {
		ids[i] = x.Name
	}
	tasks, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{IDs: ids})
	if err != nil {
		return err
	}
	subjects := map[string]string{}
	for _, x := range tasks {
		subjects[x.ID] = x.Subject
	}
	for i := range list {
		list[i].Subject = subjects[list[i].Name]
	}
	return nil
}

// UsageByAll returns the usage of all tasks and days.
func UsageByAll(ctx context.Context, t *tool.Team) (view.Usage, error) {
	u, err := t.Usage(ctx)
	if err != nil {
		return view.Usage{}, err
	}
	points, err := new(Points).read(ctx, t)
	if err != nil {
		return view.Usage{}, err
	}
	out := view.Usage{Team: spent(u.Team)}
	out.Tasks, out.Days = view.UsageBy(points, func(at time.Time) string { return at.Local().Format("2006-01-02") })
	out.Rest = out.Team.Beyond(out.Tasks)
	return out, named(ctx, t, out.Tasks)
}
