package tui

import (
	"context"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// want reads data of the selected row that is not known yet.
func (r *run) want() {
	m := r.m
	if r.team == nil || !m.have {
		return
	}
	if m.over.kind == requestOverlay || m.over.approval != 0 {
		if _, ok := m.request[m.over.approval]; !ok {
			r.readRequest(m.over.approval)
		}
	}
	switch {
	case m.at == inLog && !r.running["log"]:
		r.readLog()
	case m.at == inTime && m.past.stale && !r.running["time"]:
		r.readTime(false)
	}
	if id := m.nearWanted(); id != "" && !r.running["near"] {
		r.readNear(id)
	}
	r.wantTasks()
	it, ok := m.row()
	if m.at == inScreen {
		r.follows(m.screenOf)
		return
	}
	if !ok || m.at == inTeams {
		r.unwatch()
		return
	}
	switch on := it.on; {
	case on.Thing == view.OnApproval:
		if _, ok := m.request[on.Need.Approval]; !ok {
			r.readRequest(on.Need.Approval)
		}
	case on.Thing == view.OnTask && on.Task != nil:
		if _, ok := m.task[on.Task.ID]; !ok {
			r.readTask(on.Task.ID)
		}
	}
	name := ""
	if x, ok := m.sole(); ok {
		it = x
	}
	if (m.at == inTeam && m.wide() || m.at == inNeeds) && it.on.Thing == view.OnMember && it.on.Member != nil {
		name = it.on.Member.Name
		if d, ok := m.member[name]; (!ok || stale(d, *it.on.Member)) && !r.running["member "+name] {
			r.readMember(*it.on.Member)
		}
	}
	r.follows(name)
}

// life identifies a process of a member, and whether a supervisor has it.
type life struct {
	state team.Observed
	since time.Time
	down  bool
}

func (m *model) lifeOf(name string) life {
	l := life{down: !m.snap.Down.IsZero()}
	if x := m.memberOf(name); x != nil {
		l.state, l.since = x.State, x.Since
	}
	return l
}

// follows makes the screen of a member the one that is followed, "" for none. One that has ended is
// requested again once for each process that the member has from then on.
func (r *run) follows(name string) {
	l := r.m.lifeOf(name)
	if name != "" && name == r.watch.name && l != r.watch.life {
		r.watch.life, r.watch.new = l, true
	}
	switch {
	case name == "":
		r.unwatch()
	case r.watch.name != name, r.m.screen.Ended != "" && r.watch.new && l.state == team.Running && !l.down:
		r.watchScreen(name)
	}
}

// openScreen shows the screen of a member on the whole terminal.
func (r *run) openScreen(name string) {
	m := r.m
	switch {
	case m.at == inScreen:
		return
	case m.at == inLog && m.logged.from == inScreen: // back from there
	default:
		m.screenFrom, m.screenRow = m.at, m.cursor
	}
	m.screenOf = name
	r.goTo(inScreen)
	r.follows(name)
}

// screenBack goes back to the place and the row from which a screen was opened.
func (r *run) screenBack() {
	m := r.m
	at, row := m.screenFrom, m.screenRow
	if at == "" {
		at, row = inTeam, "member:"+m.screenOf
	}
	r.goTo(at)
	m.refresh()
	m.choose(row)
	if _, ok := m.row(); !ok {
		m.choose("member:" + m.screenOf)
	}
}

func (r *run) readRequest(id int64) {
	t := r.team
	if t == nil || id == 0 {
		return
	}
	r.read("request", func(ctx context.Context) func(*model) {
		x, err := t.Request(ctx, id)
		return func(m *model) {
			if err != nil {
				m.fail("", err, "")
				return
			}
			m.request[id] = x
		}
	})
}

func (r *run) readTask(id string) {
	t := r.team
	if t == nil {
		return
	}
	r.read("task", func(ctx context.Context) func(*model) {
		x, err := t.Task(ctx, id)
		return func(m *model) {
			if err == nil {
				m.task[id] = x
			} else {
				m.task[id] = view.TaskDetail{Error: err.Error()}
			}
		}
	})
}

// stale reports whether a member's process is another one since its details were read, or has ended.
func stale(d view.MemberDetail, now view.Member) bool {
	return d.State != now.State || d.Restarts != now.Restarts || !d.Since.Equal(now.Since)
}

func (r *run) readMember(of view.Member) {
	t := r.team
	if t == nil {
		return
	}
	r.read("member "+of.Name, func(ctx context.Context) func(*model) {
		x, err := t.Member(ctx, of.Name)
		if err != nil {
			x.Unknown = err.Error()
		}
		x.Member = of // for stale
		return func(m *model) { m.member[of.Name] = x }
	})
}

func (r *run) readReceipt() {
	t, id := r.team, r.m.sent
	if t == nil {
		return
	}
	r.read("receipt", func(ctx context.Context) func(*model) {
		list, err := t.Receipts(ctx, id)
		if err != nil {
			return nil
		}
		return func(m *model) {
			if m.sent == id && !slices.Equal(m.receipt, list) {
				m.receipt, m.receiptOld = list, false
			}
		}
	})
}

// readPlace reads data of the place beyond the snapshot.
func (r *run) readPlace() {
	t, m := r.team, r.m
	if t == nil {
		return
	}
	failed := func(err error) func(*model) { return func(m *model) { m.fail("", err, "") } }
	switch m.at {
	case inMail:
		r.read("mail", func(ctx context.Context) func(*model) {
			list, err := t.Mail(ctx)
			if err != nil {
				return failed(err)
			}
			return func(m *model) {
				m.mail = list
				if m.opens {
					m.openMail()
					m.opens, m.wanted = false, ""
				}
			}
		})
	case inUsage:
		r.read("usage", func(ctx context.Context) func(*model) {
			u, err := t.Usage(ctx)
			if err != nil {
				return failed(err)
			}
			return func(m *model) { m.usage = u }
		})
	case inTeam:
		r.readNews()
	case inTasks:
		r.readNews()
		if m.graph.near.ID != "" {
			r.readNear(m.graph.near.ID)
		}
	case inLog:
		if m.logged.merge != 0 {
			r.followGate()
		}
		r.readLog()
	case inTime:
		r.readTime(false)
	case inChanges:
		if m.across.path != "" {
			r.readAcross()
			return
		}
		name, since := m.changes.Member, m.since
		if name == "" && m.search == notSearched {
			r.searchChanges()
		}
		r.read("changes", func(ctx context.Context) func(*model) {
			list, err := t.Merges(ctx)
			if err != nil {
				return failed(err)
			}
			if name == "" {
				return func(m *model) { m.merges = list }
			}
			c, err := t.Changes(ctx, name, since)
			if err != nil {
				c = view.Changes{Member: name, Why: err.Error()}
			}
			files := view.ParseDiff(c.Patch)
			return func(m *model) {
				m.merges = list
				if m.changes.Member == name && m.since == since {
					m.setChanges(c, files)
				}
			}
		})
	default:
	}
}

// searchChanges reads the changes of the members, the most important first, up to the first one that has
// changed something. They are searched once for each time that the place is shown.
func (r *run) searchChanges() {
	t, m := r.team, r.m
	m.search = searching
	since, names := m.since, []string{}
	for _, x := range m.ranked() {
		names = append(names, x.Name)
	}
	r.read("a member with changes", func(ctx context.Context) func(*model) {
		for _, name := range names {
			c, err := t.Changes(ctx, name, since)
			if err != nil || c.Patch == "" && len(c.Untracked) == 0 {
				continue
			}
			files := view.ParseDiff(c.Patch)
			return func(m *model) {
				m.search = searched
				if m.changes.Member == "" {
					m.setChanges(c, files)
				}
			}
		}
		return func(m *model) { m.search = searched }
	})
}

// looksAfter is how long a member must stay selected before its screen is requested, so that
// moving through a list requests none.
const looksAfter = 120 * time.Millisecond

func (r *run) watchScreen(name string) {
	r.unwatch()
	t := r.team
	ctx, cancel := context.WithCancel(r.teamCtx)
	r.watch.name, r.watch.stop, r.watch.life, r.watch.new = name, cancel, r.m.lifeOf(name), false
	r.m.screenOf, r.m.screen = name, view.Frame{}
	r.all.Go(func() {
		defer r.caught()
		rest := time.NewTimer(looksAfter)
		defer rest.Stop()
		select {
		case <-rest.C:
		case <-ctx.Done():
			return
		}
		show := func(f view.Frame) {
			select {
			case r.changes <- func(m *model) {
				if ctx.Err() == nil {
					m.showScreen(f)
				}
			}:
			case <-ctx.Done():
			}
		}
		if err := t.Screen(ctx, name, show); err != nil && ctx.Err() == nil {
			show(view.Frame{Ended: err.Error()})
		}
	})
}

// showScreen is a change that the rows do not show.
func (m *model) showScreen(f view.Frame) {
	m.news--
	m.screen = f
}

func (r *run) unwatch() {
	if r.watch.stop != nil {
		r.watch.stop()
		r.watch.stop, r.watch.name = nil, ""
	}
}
