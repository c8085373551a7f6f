package tui

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/view"
)

const (
	furtherRead  = 500 // tasks that are read at once
	furtherFound = 200 // found tasks up to which a filter searches by itself
	furtherNear  = 8   // rows before the end of a list from which more are read
)

// further has tasks beyond those of the snapshot: those that a filter has found, or the next ones of
// the list.
type further struct {
	filter string
	tasks  []view.Task
	next   map[string]string // where the next page of each part begins
	done   map[string]bool   // parts that were read to their end
	looked int
	event  int64  // newest event that the tasks are of
	wanted bool   // the selection is near the end of the list
	failed string // why they could not be read
}

// part reports whether the snapshot has only a part of the tasks.
func (m *model) part() bool { return m.have && m.snap.Count().Total > len(m.snap.Tasks) }

// inTaskList reports whether the place has a list of tasks, which can go on beyond the snapshot.
func (m *model) inTaskList() bool { return m.at == inTeam || m.at == inTasks && !m.inGraph() }

// tasks returns the tasks of the lists: those of the snapshot, then the further ones.
func (m *model) tasks() []view.Task {
	if len(m.further.tasks) == 0 || m.further.filter != m.filter {
		return m.snap.Tasks
	}
	known := make(map[string]bool, len(m.snap.Tasks))
	for _, t := range m.snap.Tasks {
		known[t.ID] = true
	}
	out := slices.Clone(m.snap.Tasks)
	for _, t := range m.further.tasks {
		if !known[t.ID] {
			out = append(out, t)
		}
	}
	return out
}

// lookedAt returns how many tasks the lists show or a filter has looked through, and whether these
// are all.
func (m *model) lookedAt() (n int, all bool) {
	total := m.snap.Count().Total
	if !m.part() {
		return total, true
	}
	f := m.further
	if f.filter != m.filter {
		return len(m.snap.Tasks), false
	}
	if len(f.done) == len(view.TaskParts()) {
		return total, true
	}
	return clamp(f.looked+m.snap.Count().Active, len(m.snap.Tasks), total), false
}

// nearEnd notes that the selected row is near the end of a list of tasks.
func (m *model) nearEnd() {
	if !m.inTaskList() || !m.part() {
		return
	}
	for _, s := range m.sections {
		at := slices.IndexFunc(s.items, func(it item) bool { return it.id == m.cursor })
		if at >= 0 && s.items[at].on.Thing == view.OnTask && s.id != "needs" && at >= len(s.items)-furtherNear {
			m.further.wanted = true
		}
	}
}

// nextPart returns the part of the tasks of which a page is to be read, "" for none.
func (m *model) nextPart() string {
	f := m.further
	if !m.inTaskList() || !m.part() || f.failed != "" {
		return ""
	}
	parts := view.TaskParts()
	switch {
	case f.filter != m.filter || f.filter != "" && len(f.tasks) < furtherFound:
	case !f.wanted:
		return ""
	case m.inColumns() && f.filter == "": // of the column
		column, _ := m.inColumn()
		if column < 0 {
			return ""
		}
		part := strings.ToLower(m.sections[column].id)
		if part == "ready" || part == "waiting" {
			part = view.PartPending
		}
		parts = slices.DeleteFunc(parts, func(p string) bool { return p != part })
	}
	for _, p := range parts {
		if f.filter != m.filter || !f.done[p] {
			return p
		}
	}
	return ""
}

// wantTasks reads further tasks, if some are to be read. Each read is short: one that a longer filter
// makes useless delays nothing.
func (r *run) wantTasks() {
	m, t := r.m, r.team
	if m.further.filter != m.filter && (m.filter == "" || !m.inTaskList() || !m.part()) {
		wanted := m.further.wanted && m.filter == ""
		m.further = further{filter: m.filter, wanted: wanted}
	}
	part := m.nextPart()
	if part == "" {
		m.further.wanted = false
		return
	}
	if r.running["tasks"] {
		return
	}
	if m.further.filter != m.filter {
		m.further = further{filter: m.filter}
	}
	q := view.TaskQuery{Filter: m.filter, Part: part, After: m.further.next[part], Most: furtherRead}
	if q.After == "" && q.Filter == "" { // the snapshot has the first ones
		q.Most += tasksShown
	}
	r.read("tasks", func(ctx context.Context) func(*model) {
		p, err := t.TaskPage(ctx, q)
		return func(m *model) { m.addTasks(q, p, err) }
	})
}

// addTasks takes in a page of further tasks.
func (m *model) addTasks(q view.TaskQuery, p view.TaskPage, err error) {
	f := &m.further
	if f.filter != q.Filter || f.next[q.Part] != q.After { // another filter was typed meanwhile
		return
	}
	if err != nil {
		f.failed = err.Error()
		m.fail("the tasks cannot be read:", err, "")
		return
	}
	before := len(m.tasks())
	if f.next == nil {
		f.next, f.done = map[string]string{}, map[string]bool{}
	}
	if f.event == 0 {
		f.event = p.Event
	}
	known := map[string]bool{}
	for _, t := range f.tasks {
		known[t.ID] = true
	}
	for _, t := range p.Tasks {
		if !known[t.ID] {
			f.tasks = append(f.tasks, t)
		}
	}
	f.looked += p.Looked
	if f.next[q.Part] = p.Next; p.Next == "" {
		f.done[q.Part] = true
	}
	if len(m.tasks()) > before {
		f.wanted = false
	}
}

// readNews brings the further tasks up to date.
func (r *run) readNews() {
	m, t := r.m, r.team
	if t == nil || !m.inTaskList() || m.further.next == nil || !m.part() {
		m.further.failed = "" // the next read may succeed
		return
	}
	filter, since, ids := m.further.filter, m.further.event, make([]string, 0, len(m.further.tasks))
	for _, x := range m.further.tasks {
		ids = append(ids, x.ID)
	}
	r.read("news of tasks", func(ctx context.Context) func(*model) {
		n, err := t.TaskNews(ctx, ids, since)
		return func(m *model) {
			if err == nil && m.further.filter == filter && m.further.event == since {
				m.renew(n)
			}
		}
	})
}

// renew takes in what has become of further tasks. A filter for what depends on other tasks searches
// again when any has changed.
func (m *model) renew(n view.TaskNews) {
	f := &m.further
	f.failed = ""
	if n.Anew || n.Event != f.event && strings.Contains(strings.ToLower(f.filter), "stuck") {
		m.further = further{filter: f.filter, wanted: f.filter == "" && len(f.tasks) > 0}
		return
	}
	now := map[string]view.Task{}
	for _, t := range n.Tasks {
		now[t.ID] = t
	}
	kept := make([]view.Task, 0, len(f.tasks))
	for _, t := range f.tasks {
		if slices.Contains(n.Gone, t.ID) {
			continue
		}
		if x, ok := now[t.ID]; ok {
			t = x
			delete(now, t.ID)
		}
		kept = append(kept, t)
	}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		kept = append(kept, now[id])
	}
	f.tasks, f.event = kept, n.Event
}

// taskTitle says how many tasks there are, and how many of them are read.
func (m *model) taskTitle() string {
	title := fmt.Sprintf("TASKS %d", m.snap.Count().Total)
	if m.filter != "" || !m.part() {
		return title
	}
	if n := len(m.tasks()); n > len(m.snap.Tasks) {
		return fmt.Sprintf("%s, %d read", title, n)
	}
	return fmt.Sprintf("%s, the %d that matter now", title, len(m.snap.Tasks))
}

// searched says how many tasks a filter has looked through, if those are not all.
func (m *model) searched() string {
	n, all := m.lookedAt()
	if all || !m.inTaskList() {
		return ""
	}
	return fmt.Sprintf(" in %d of %d tasks", n, m.snap.Count().Total)
}

// found says how many rows of a list of tasks a filter has left.
func (m *model) found(n int) string {
	looked, all := m.lookedAt()
	if all {
		return fmt.Sprintf(", %d of %d shown", n, m.snap.Count().Total)
	}
	return fmt.Sprintf(", %d in the first %d", n, looked)
}
