package tui

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/internal/view"
)

// selectFirst makes the initial selection, once its row exists.
func (r *run) selectFirst() {
	if r.selected || !r.m.have || r.ui.Select == "" {
		return
	}
	r.selected = true
	want := r.ui.Select
	kind, id, ok := strings.Cut(want, ":")
	if !ok {
		kind, id = "member", want
	}
	if kind == "member" {
		r.m.unfold(id)
	}
	for _, s := range r.m.sections {
		for _, it := range s.items {
			switch {
			case it.id == kind+":"+id,
				kind == "approval" && it.on.Need != nil && it.on.Need.Approval != 0 && strconv.FormatInt(it.on.Need.Approval, 10) == id,
				kind == "need" && it.on.Need != nil && it.on.Need.Name() == id:
				r.m.choose(it.id)
				return
			}
		}
	}
	if kind == "task" && r.m.inTaskList() && r.m.part() {
		r.findTask(id)
		return
	}
	r.m.say(want+" is not here", true)
}

// findTask reads a task beyond those of the snapshot and selects it, unless a key comes first.
func (r *run) findTask(id string) {
	t, key := r.team, r.m.lastKey
	r.read("a task", func(ctx context.Context) func(*model) {
		p, err := t.TaskPage(ctx, view.TaskQuery{Part: view.TaskParts()[0], Most: 1}) // it has the newest event
		var n view.TaskNews
		if err == nil {
			n, err = t.TaskNews(ctx, []string{id}, p.Event)
		}
		return func(m *model) {
			at := slices.IndexFunc(n.Tasks, func(x view.Task) bool { return x.ID == id })
			switch {
			case err != nil:
				m.fail("the task cannot be read:", err, "")
				return
			case at < 0:
				m.say("task:"+id+" is not here", true)
				return
			case m.further.next == nil:
				m.further = further{filter: m.filter, next: map[string]string{}, done: map[string]bool{}, event: n.Event, tasks: n.Tasks[at : at+1]}
			default:
				m.further.tasks = append(m.further.tasks, n.Tasks[at])
			}
			m.refresh()
			if m.lastKey.Equal(key) {
				m.choose("task:" + id)
			}
		}
	})
}
