package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
)

// event handles an input; true leaves the screen.
func (r *run) event(e term.Event) (leave bool) {
	m := r.m
	m.news++
	r.gaze.input(e)
	switch e.Kind {
	case term.Resize:
		m.cols, m.rows = r.term.Size()
	case term.Focus: // gaze has it
	case term.Paste:
		r.guard.key(e.At)
		m.lastKey = e.At
		if m.over.kind == inputOverlay || m.over.kind == confirmOverlay {
			m.over.field.insert(e.Text)
			r.typed(e.At)
		}
		r.pastedLine(e.Text)
	case term.Mouse:
		return r.mouse(e)
	case term.Key:
		why := r.guard.key(e.At)
		m.lastKey = e.At
		m.heard()
		if e.Key == leaveKey {
			return true
		}
		if m.over.kind != noOverlay {
			return r.overKey(e, why)
		}
		return r.key(e, why)
	case term.Gone:
		return true
	}
	return false
}

// key handles a key on a place.
func (r *run) key(e term.Event, why string) (leave bool) {
	m := r.m
	if a, ok := m.actionOf(e.Key); ok {
		r.begin(a, e, why)
		return false
	}
	id := m.keys.commandOf(e.Key)
	if id == "" && m.at == inTeams && m.hasAction(e.Key) {
		m.say(m.noAction(), true)
		return false
	}
	if id == "" {
		m.say(strings.TrimSuffix(view.Clean(e.Key)+" does nothing here: "+m.keys.hint("help", "lists the keys"), ": "), true)
	}
	return r.command(id, e)
}

// command runs a command of the screen.
func (r *run) command(id string, e term.Event) (leave bool) {
	m := r.m
	page := max(1, (m.rows-4)/2)
	switch {
	case m.at == inChanges && r.inChanges(id, page),
		m.at == inLog && r.inLog(id),
		m.at == inPager && r.inPager(id),
		m.at == inTime && r.inTime(id, e.Key),
		m.inText() && r.inText(id):
		return false
	}
	switch id {
	case "down", "up":
		r.step(map[string]int{"down": 1, "up": -1}[id])
		m.news-- // the rows stay
	case "top":
		m.move(-1 << 30)
	case "bottom":
		m.move(1 << 30)
	case "scroll-down":
		r.scroll(page)
	case "scroll-up":
		r.scroll(-page)
	case "next-list":
		r.list(1)
	case "previous-list":
		r.list(-1)
	case "next-need":
		r.nextNeed(1)
	case "previous-need":
		r.nextNeed(-1)
	case "put-off":
		r.putOffNeed()
	case "open":
		r.open()
	case "back":
		r.back()
	case "menu":
		if m.at == inTeams {
			m.say(m.noAction(), true)
			return false
		}
		m.over = overlay{kind: choiceOverlay, title: "what can be done", choices: m.choices(false)}
	case "palette":
		m.over = overlay{kind: paletteOverlay, title: "all actions", choices: m.choices(true)}
	case "help":
		m.over = overlay{kind: helpOverlay, title: "keys", choices: slices.DeleteFunc(m.choices(true), func(c choice) bool { return c.key == "" })}
	case "filter":
		m.over = overlay{kind: filterOverlay, field: field{text: m.filter, at: len(m.filter)}}
	case "screen", "changes":
		it, ok := m.row()
		switch {
		case m.at == inTeams:
			m.say(m.noAction(), true)
		case !ok || it.on.Member == nil:
			m.say("nothing was done: the row is of no member", true)
		case id == "screen":
			r.openScreen(it.on.Member.Name)
		default:
			m.changes, m.files, m.diff, m.across = view.Changes{Member: it.on.Member.Name}, nil, cursor{}, across{}
			r.goTo(inChanges)
		}
	case "log":
		task := m.taskInHand()
		switch {
		case m.at == inTeams:
			m.say(m.noAction(), true)
		case task == "":
			m.say("nothing was done: the row is of no task", true)
		default:
			r.openLog(task)
		}
	case "turn":
		if m.at == inTasks {
			m.tasksAs, m.scroll = nextOf(m.tasksAs), 0
			if it, ok := m.row(); ok && it.on.Task != nil {
				m.cursor = taskID(*it.on.Task)
			}
		}
	case "pager":
		r.openPager()
	case "copy":
		r.copy()
	case "redraw":
		r.term.Redraw()
	case "suspend":
		if err := r.term.Suspend(); err != nil {
			m.fail("suspend:", err, "")
		}
		m.cols, m.rows = r.term.Size()
	case "quit":
		return r.quit()
	default:
		if word, ok := strings.CutPrefix(id, putOffPrefix); ok {
			r.putOffFor(word)
		}
		switch p, ok := strings.CutPrefix(id, "view-"); {
		case ok && (m.at == inTeams || m.name == ""):
			m.say(m.noAction(), true)
		case ok && r.team != nil:
			if place(p) == inChanges {
				m.chooseChanges()
			}
			r.goTo(place(p))
		}
	}
	_ = e
	return false
}

func (r *run) quit() bool {
	m := r.m
	r.finishWriting(writingAsks)
	if w := r.writing; w != nil && (w.busy || w.text != w.saved) && strings.TrimSpace(w.text) != "" { // it takes long
		m.drafts[w.draft] = w.text
	}
	if len(m.unsent()) > 0 {
		m.over = overlay{kind: leaveOverlay}
		return false
	}
	return r.ui.Leave == nil || r.ui.Leave(r.ctx) != nil
}

// step moves the selection, or scrolls a place without rows.
func (r *run) step(n int) {
	switch r.m.at {
	case inScreen:
		r.scrollScreen(n)
	case inLog, inPager:
		r.m.scroll += n
	default:
		r.m.move(n)
	}
}

func (r *run) scroll(n int) {
	switch r.m.at {
	case inScreen:
		r.scrollScreen(n)
	case inChanges, inMail, inTasks, inLog, inPager:
		r.m.scroll += n
	default:
		r.m.move(n)
	}
}

// list moves to the next list that has rows.
func (r *run) list(n int) {
	m := r.m
	if m.inGraph() {
		m.graphAlong(n)
		return
	}
	if m.inColumns() {
		m.acrossColumns(n)
		return
	}
	sections := m.visible()
	if m.at == inTeam && !m.wide() {
		all := len(m.sections)
		if all == 0 {
			return
		}
		at := m.groupAt()
		for range all {
			at = (at + n + all) % all
			if len(m.sections[at].items) > 0 {
				break
			}
		}
		m.tab = max(1, at)
		sections = m.sections[at : at+1]
		if len(sections[0].items) > 0 {
			m.choose(sections[0].items[0].id)
		}
		return
	}
	at := -1
	for i, s := range sections {
		if slices.ContainsFunc(s.items, func(it item) bool { return it.id == m.cursor }) {
			at = i
		}
	}
	for range sections {
		at = (at + n + len(sections)) % len(sections)
		if len(sections[at].items) > 0 {
			m.choose(sections[at].items[0].id)
			return
		}
	}
}

// nextNeed moves to the next need: in this place, on the team's screen, or in another team.
func (r *run) nextNeed(n int) {
	m := r.m
	if m.at == inTeams {
		if name := nextTeam(m.teams, strings.TrimPrefix(m.cursor, "team:"), true); name != "" {
			r.enterTeam(name)
			return
		}
		m.say("nothing needs you", false)
		return
	}
	all, now := m.needs()
	switch {
	case now == 0:
		m.say("nothing needs you here", false)
		r.needElsewhere(func() {})
		return
	case n > 0 && m.cursor == needID(all[now-1]) && (m.at == inTeam || m.at == inNeeds):
		r.needElsewhere(func() { m.nextNeed(n) })
		return
	}
	if m.at != inTeam && m.at != inNeeds {
		r.goTo(inTeam)
		m.refresh()
	}
	m.nextNeed(n)
}

// nextTeam returns the first team that needs the person, in the order of the list from one of its
// teams on and round, with that team itself first or left out; "" for none.
func nextTeam(list []view.Glance, from string, itself bool) string {
	at := max(0, slices.IndexFunc(list, func(g view.Glance) bool { return g.Team == from }))
	for i := range list {
		if g := list[(at+i)%len(list)]; g.Needs > 0 && (itself || g.Team != from) {
			return g.Team
		}
	}
	return ""
}

// needElsewhere goes to the next team that needs the person, unless a key comes first. Without one it
// does what is left.
func (r *run) needElsewhere(otherwise func()) {
	m, home := r.m, r.ui.Home
	if home == nil {
		otherwise()
		return
	}
	from, key := m.name, m.lastKey
	r.read("teams", func(ctx context.Context) func(*model) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var list []view.Glance
		_ = home.Teams(ctx, nil, func(l []view.Glance) { // without a list there is no other team
			list = l
			cancel()
		})
		return func(m *model) {
			if !m.lastKey.Equal(key) || m.name != from {
				return
			}
			name := nextTeam(list, from, false)
			if name == "" {
				otherwise()
				return
			}
			m.at, m.cursor = inTeam, ""
			r.enterTeam(name)
		}
	})
}

// open opens the selected item.
func (r *run) open() {
	m := r.m
	it, ok := m.row()
	if !ok || it.gone {
		return
	}
	switch on := it.on; {
	case m.turnCrew(it):
	case m.at == inTeams && r.openStart(it.id):
	case m.at == inTeams:
		r.enterTeam(strings.TrimPrefix(it.id, "team:"))
	case on.Thing == view.OnApproval:
		m.over = overlay{kind: requestOverlay, approval: on.Need.Approval}
	case on.Need != nil && on.Need.Kind == view.NeedDialog:
		if a, ok := view.ActionByID("attach"); ok && !m.readOnly {
			r.begin(a, term.Event{}, "")
		}
	case on.Need != nil && on.Need.Kind == view.NeedMerge:
		m.changes, m.files = view.Changes{Member: on.Need.Member}, nil
		r.goTo(inChanges)
	case on.Need != nil && on.Need.Kind == view.NeedTask && on.Need.Task == "":
		r.goTo(inTasks)
	case on.Need != nil && on.Need.Kind == view.NeedMail:
		m.wanted = on.Need.Message
		r.goTo(inMail)
	case m.at == inChanges && on.Merge != nil:
		r.openGateLog(*on.Merge)
	case m.at == inChanges && it.cross > 0:
		r.openCrossed(it)
	case m.at == inChanges:
		m.enterDiff()
	case on.Thing == view.OnTask && on.Task != nil && (m.at == inTasks || on.Need != nil):
		r.openLog(on.Task.ID)
	case on.Message != nil: // it is beside or below the list
		if m.opened == nil {
			m.opened = map[string]bool{}
		}
		m.opened[it.id] = !m.opened[it.id]
	case on.Thing == view.OnTask:
		r.goTo(inTasks)
		m.refresh()
		m.choose(it.id)
	case on.Member != nil:
		r.openScreen(on.Member.Name)
	}
}

// back goes one level up: out of a filter, to the team, to the teams.
func (r *run) back() {
	m := r.m
	switch {
	case m.filter != "":
		m.filter = ""
		m.atLive()
	case m.at == inScreen:
		r.screenBack()
	case m.at == inTeams:
	case m.at != inTeam:
		r.goTo(inTeam)
	default:
		r.goTo(inTeams)
		m.cursor = "team:" + m.name
	}
}

func (r *run) copy() {
	if r.m.at == inScreen {
		r.term.Copy(r.m.screenCopy())
		r.m.say("copied", false)
		return
	}
	if r.m.at == inPager {
		r.term.Copy(strip(strings.Join(r.m.text(), "\n")))
		r.m.say("copied", false)
		return
	}
	if it, ok := r.m.row(); ok {
		text := strings.TrimSpace(strip(it.line(1000)))
		if need := it.on.Need; need != nil && need.Text != "" {
			text = need.Text
			if q, ok := r.m.request[need.Approval]; ok && q.Command != "" {
				text = q.Command
			}
		}
		if r.m.at == inLog {
			text = strip(strings.Join(r.m.text(), "\n"))
		}
		r.term.Copy(text)
		r.m.say("copied", false)
	}
}

// begin starts an action, or first asks for its input. why is set if the key must not answer.
func (r *run) begin(a view.Action, e term.Event, why string) {
	m := r.m
	if m.at == inTeams {
		m.say(m.noAction(), true)
		return
	}
	t := m.target()
	d := t.Deed(a)
	if slices.Contains(a.On, view.OnTeam) && !slices.Contains(a.On, t.Thing) {
		d = view.Deed{Action: a.ID}
	}
	if id := m.approval(); id != 0 && a.Operation == "ApprovalAnswer" {
		if w := r.writing; w != nil && w.deed.Approval == id && (w.busy || w.text != w.saved) {
			r.flush()
			m.say("nothing was answered: the comment is being written down", true)
			return
		}
		d.Approval = id
		req, ok := m.request[id]
		if !ok {
			m.say("the request is still being read", true)
			return
		}
		d.Seen = req.Seen()
	}
	switch {
	case a.Terminal:
		r.away(d)
	case a.Confirm:
		name, what := d.Member, a.Title+" "+view.Clean(d.Member)
		switch {
		case slices.Contains(a.On, view.OnTeam):
			name, what = m.name, a.Title
		case t.Thing == view.OnTask:
			name, what = d.Task, a.Title+" "+view.Clean(d.Task)
		}
		m.over = overlay{kind: confirmOverlay, action: a, deed: d, opened: e.At, draft: name, title: fmt.Sprintf("%s: this cannot be taken back. Type %s to do it", what, view.Clean(name))}
	case a.Preview && d.Seen == "":
		r.preview(a, d)
	case a.Asks != "":
		r.ask(a, d, e)
	case a.Operation == "ApprovalAnswer":
		switch {
		case why != "":
			m.say(why, true)
		case r.frame.seen[d.Approval] != d.Seen:
			m.over = overlay{kind: requestOverlay, approval: d.Approval} // a request that is not visible as a whole is opened first
		default:
			r.guard.give(d, e.At)
		}
	default:
		r.do(d)
	}
}

// ask opens the input field of an action, with text that was typed earlier and not sent.
func (r *run) ask(a view.Action, d view.Deed, e term.Event) {
	m := r.m
	what := d.Member
	if d.Approval != 0 && a.Operation == "ApprovalAnswer" {
		what = fmt.Sprintf("request %d of %s", d.Approval, d.Member)
	} else if t := m.target(); t.Thing == view.OnTask && a.ID != "message" {
		what = "task " + d.Task
	} else if d.Group != "" {
		what = d.Group
	} else if a.ID == "edit-comment" {
		what = d.Comment
	} else if d.Approval != 0 && a.Operation == "ReviewAdd" {
		what = fmt.Sprintf("on %s of plan %d of %s", linesWords(d.Lines), d.Approval, d.Member)
		if a.ID == "edit-plan-comment" {
			what = fmt.Sprintf("%s on plan %d of %s", d.Comment, d.Approval, d.Member)
		}
	} else if a.Operation == "ReviewAdd" {
		what = d.Where() + " of " + d.Member
		if a.ID == "comment" {
			what = "on " + what
		}
	}
	task, read := m.task[d.Task]
	if a.ID == "describe-task" || a.ID == "command-task" {
		if !read || task.ID == "" {
			m.say("the task is still being read", true) // what is typed would replace a text that nobody has seen
			return
		}
	}
	title := strings.TrimSpace(a.Title+" "+view.Clean(what)) + ": " + a.Asks
	if d.Comments > 0 {
		title += "; with " + commentsWords(d.Comments) + " on the plan"
	}
	o := overlay{kind: inputOverlay, action: a, deed: d, title: title, draft: strings.TrimSpace(a.Title + " " + what), opened: e.At}
	if a.Operation == "ApprovalAnswer" || d.Approval != 0 && a.Operation == "ReviewAdd" {
		o.approval = d.Approval
	}
	if o.comment() && m.over.kind == requestOverlay {
		under := m.over
		under.mark = 0
		o.under = &under
	}
	o.draft = m.name + ": " + o.draft
	o.field.text = cmp.Or(m.drafts[o.draft], m.kept[o.draft])
	here := o.field.text != ""
	if !here {
		switch a.ID {
		case "approve-edited":
			o.field.text = string(m.request[d.Approval].Input)
		case "describe-task":
			o.field.text = task.Description
		case "command-task":
			o.field.text = task.Run
		case "rename-task":
			if t := m.target().Task; t != nil {
				o.field.text = t.Subject
			}
		}
	}
	if !here && (a.ID == "edit-comment" || a.ID == "edit-plan-comment") {
		o.field.text = m.target().Change.Comment.Text
	}
	o.field.at = len(o.field.text)
	m.over = o
	r.flush()
	w := &writing{team: m.name, deed: d, comment: o.comment(), draft: o.draft, text: o.field.text, saved: o.field.text}
	r.writing = w
	if m.drafts[o.draft] != "" {
		w.saved = ""
	}
	if !w.comment && !here {
		r.readDraft(w)
	}
}
