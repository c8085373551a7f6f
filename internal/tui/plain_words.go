package tui

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// word is a word of the plain screen that changes nothing. The others are the actions, by
// their names.
type word struct{ name, takes, title string }

var plainWords = []word{
	{"needs", "", "what needs you"},
	{"members", "", "the members and what they do"},
	{"tasks", "", "the tasks that matter now"},
	{"mail", "", "the newest messages"},
	{"show", "THING", "a need by its number, a member by its name, a task by its id, request 3"},
	{"screen", "MEMBER", "the last lines of the member's screen"},
	{"log", "TASK", "the output of the task's last attempt, and why it failed"},
	{"changes", "MEMBER", "what the member has changed, and the comments on it"},
	{"usage", "", "tokens and cost"},
	{"menu", "THING", "what can be done with it, as a numbered list; the number does it"},
	{"teams", "", "the teams"},
	{"team", "NAME", "open another team"},
	{"help", "", "these words"},
	{"quit", "", "leave"},
}

// aliases are words for actions beside their names.
var aliases = map[string]string{"say": "message", "tell": "message", "all": "broadcast", "add": "add-task", "delete": "delete-task", "send": "send-review", "depends": "depend", "always": "approve-always"}

// takes says what follows the word of an action.
func takes(a view.Action) string {
	var out []string
	switch a.On[0] {
	case view.OnApproval:
		out = append(out, "REQUEST")
		switch {
		case strings.Contains(a.Command, "{comment}"):
			out = append(out, "COMMENT")
		case strings.Contains(a.Command, "{lines}"):
			out = append(out, "LINES")
		}
	case view.OnMember:
		out = append(out, "MEMBER")
	case view.OnTask:
		out = append(out, "TASK")
	case view.OnMessage:
		out = append(out, "MESSAGE")
	case view.OnMerge:
		out = append(out, "MERGE")
	case view.OnChange:
		out = append(out, "MEMBER")
		switch {
		case strings.Contains(a.Command, "{comment}"):
			out = append(out, "COMMENT")
		case strings.Contains(a.Command, "{place}"):
			out = append(out, "FILE:LINES")
		case strings.Contains(a.Command, "{file}"):
			out = append(out, "FILE")
		}
	case view.OnTeam:
	}
	if a.Asks != "" {
		out = append(out, "TEXT")
	}
	return strings.Join(out, " ")
}

// line does what a person has typed; true leaves the screen.
func (t *talk) line(text string, now time.Time) (leave bool) {
	burst := now.Sub(t.last) < burst
	t.last = now
	if t.asks != nil {
		ask := t.asks
		t.asks = nil
		if text == "" {
			t.say("nothing was done.")
		} else {
			ask(text)
		}
		return false
	}
	name, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	if n, err := strconv.Atoi(name); err == nil && rest == "" && n >= 1 && n <= len(t.first) {
		t.askFirst(n)
		return false
	}
	if n, err := strconv.Atoi(name); err == nil && rest == "" && n >= 1 && n <= len(t.menu) {
		d := t.menu[n-1]
		if a, ok := view.ActionByID(d.Action); ok {
			t.do(a, d, now, burst)
		}
		return false
	}
	if name == "" {
		return false
	}
	if id := aliases[name]; id != "" {
		name = id
	}
	switch name {
	case "quit", "q", "exit":
		return true
	case "help", "?":
		t.help()
		return false
	case "teams":
		t.teams()
		return false
	case "team":
		if rest == "" {
			t.say("which team: team NAME.")
		} else {
			t.open(rest)
		}
		return false
	}
	if !t.have {
		t.say("the team is still being read, or none is open: team NAME.")
		return false
	}
	if t.look(name, rest) {
		return false
	}
	a, ok := view.ActionByID(name)
	if !ok {
		t.say("there is no word %q: help lists them.", name)
		return false
	}
	d, err := t.deed(a, rest)
	if err != nil {
		t.fail(err)
		return false
	}
	t.do(a, d, now, burst)
	return false
}

func (t *talk) help() {
	for _, w := range plainWords {
		t.say("%s: %s", strings.TrimSpace(w.name+" "+w.takes), w.title)
	}
	if t.p.ReadOnly {
		return
	}
	for _, a := range view.Actions() {
		t.say("%s: %s", strings.TrimSpace(a.ID+" "+takes(a)), a.Title)
	}
	var names []string
	for short := range aliases {
		names = append(names, short+" is "+aliases[short])
	}
	slices.Sort(names)
	t.say("shorter: %s", strings.Join(names, ", "))
}

// deed is an action with what the person has typed behind its word.
func (t *talk) deed(a view.Action, rest string) (view.Deed, error) {
	d := view.Deed{Action: a.ID}
	next := func() string {
		w, more, _ := strings.Cut(rest, " ")
		rest = strings.TrimSpace(more)
		return w
	}
	missing := func(what string) error {
		return team.Errorf(team.CodeInvalid, "%s needs %s", a.ID, what).WithHint(strings.TrimSpace(a.ID + " " + takes(a)))
	}
	switch a.On[0] {
	case view.OnApproval:
		n, err := strconv.ParseInt(strings.TrimPrefix(next(), "#"), 10, 64)
		if err != nil {
			return d, missing("the number of a request")
		}
		d.Approval = n
		for _, x := range t.snap.Needs {
			if x.Approval == n {
				d.Member = x.Member
			}
		}
		switch {
		case strings.Contains(a.Command, "{comment}"):
			if d.Comment = next(); d.Comment == "" {
				return d, missing("the number of a comment")
			}
		case strings.Contains(a.Command, "{lines}"):
			if d.Lines = next(); d.Lines == "" {
				return d, missing("a line, or lines as 3-4")
			}
		}
	case view.OnMember, view.OnChange:
		if d.Member = next(); d.Member == "" {
			return d, missing("the name of a member")
		}
		switch {
		case strings.Contains(a.Command, "{comment}"):
			if d.Comment = next(); d.Comment == "" {
				return d, missing("the number of a comment")
			}
		case strings.Contains(a.Command, "{place}"), strings.Contains(a.Command, "{file}"):
			if d.Path = next(); d.Path == "" {
				return d, missing("a file")
			}
			if i := strings.LastIndexByte(d.Path, ':'); i > 0 && strings.Contains(a.Command, "{place}") {
				d.Path, d.Lines = d.Path[:i], d.Path[i+1:]
			}
		}
	case view.OnTask:
		if d.Task = strings.TrimPrefix(next(), "#"); d.Task == "" {
			return d, missing("the id of a task")
		}
	case view.OnMessage:
		id := next()
		list, err := t.team.Mail(t.ctx)
		if err != nil {
			return d, err
		}
		for _, m := range list {
			if id != "" && strings.HasPrefix(m.ID, id) {
				d.Message, d.Member = m.ID, m.From
			}
		}
		if d.Message == "" {
			return d, missing("the beginning of the id of a message, as mail lists it")
		}
	case view.OnMerge:
		n, err := strconv.ParseInt(next(), 10, 64)
		if err != nil {
			return d, missing("the number of a merge")
		}
		d.Merge = n
	case view.OnTeam:
	}
	d.Text = rest
	if rest != "" && a.Asks == "" {
		return d, team.Errorf(team.CodeInvalid, "%s takes nothing more: %q", a.ID, rest).WithHint(strings.TrimSpace(a.ID + " " + takes(a)))
	}
	return d, nil
}

// do carries a deed out, or asks for what it needs first.
func (t *talk) do(a view.Action, d view.Deed, now time.Time, burst bool) {
	name := d.Member
	if a.On[0] == view.OnTask {
		name = d.Task
	}
	switch {
	case t.p.ReadOnly && a.Operation != "":
		t.say("nothing was done: the screen is read only.")
		return
	case a.Confirm:
		t.say("%s %s: this cannot be taken back. Type %s to do it.", a.Title, name, name)
		t.asks = func(text string) {
			if text != name {
				t.say("nothing was done: that is not its name.")
				return
			}
			t.carry(a, d)
		}
		return
	}
	if a.Operation == "ApprovalAnswer" {
		r, err := t.team.Request(t.ctx, d.Approval)
		switch {
		case err != nil:
			t.fail(err)
			return
		case r.State != "pending":
			t.say("nothing was answered: %s %d of %s is already %s by %s.", r.Kind, r.ID, r.Member, r.State, r.AnsweredBy)
			return
		case t.seen[d.Approval] != r.Seen():
			t.request(r)
			t.say("nothing was answered yet: this is the whole request. Say it again.")
			return
		case burst || now.Sub(t.shown) < unread:
			t.say("nothing was answered: these words came faster than a hand types. Say it again.")
			return
		}
		d.Seen, d.Member = r.Seen(), r.Member
		if a.ID == "reject" {
			d.Comments = r.Drafts()
		}
	}
	if a.Preview {
		t.preview(a, d)
		return
	}
	if a.Asks != "" && d.Text == "" {
		t.say("%s: %s?", strings.TrimSpace(a.Title+" "+name), a.Asks)
		t.asks = func(text string) {
			d.Text = text
			t.carry(a, d)
		}
		return
	}
	t.carry(a, d)
}

func (t *talk) carry(a view.Action, d view.Deed) {
	// What was begun is brought to an end, though the screen is left meanwhile.
	done, err := t.team.Do(context.WithoutCancel(t.ctx), d)
	switch {
	case err != nil:
		t.fail(err)
	case a.Terminal:
		t.say("back from %s.", d.Member)
	default:
		t.say("%s.", strings.TrimSuffix(done.Said, "."))
		if done.Message != "" {
			t.sent, t.sentTo, t.receipt = done.Message, d.Member, ""
			t.tellReceipt()
		}
	}
}

// request writes a request as a whole.
func (t *talk) request(r view.Request) {
	m := newModel()
	m.now = time.Now()
	m.request[r.ID] = r
	lines, _, _, _ := m.requestDrawn(r.ID, 1<<20, true)
	for _, l := range lines {
		if strings.TrimSpace(l) != "" {
			t.say("%s", strings.TrimRight(l, " "))
		}
	}
	if r.State == "pending" {
		t.seen[r.ID], t.shown = r.Seen(), time.Now()
	}
}

// look is a word that changes nothing; false for others.
func (t *talk) look(name, rest string) bool {
	switch name {
	case "needs":
		t.say("%s.", needsWords(len(t.snap.Needs)))
		asked := requestsOf(t.ctx, t.team, t.snap)
		for i, n := range t.snap.Needs {
			t.need(i, n, asked[n.Approval])
		}
	case "members":
		m := t.model()
		for _, x := range t.snap.Members {
			if !x.Lead {
				t.member(m, x)
			}
		}
	case "tasks":
		for _, x := range taskOrder(t.snap.Tasks) {
			t.task(x)
		}
		if more := t.snap.Count().Total - len(t.snap.Tasks); more > 0 {
			t.say("and %d tasks more.", more)
		}
	case "mail":
		list, err := t.team.Mail(t.ctx)
		if err != nil {
			t.fail(err)
			return true
		}
		for _, x := range list[max(0, len(list)-20):] {
			to := x.To
			if to == "" {
				to = "all"
			}
			state := ""
			if len(x.Receipts) > 0 {
				state = ", " + string(x.Receipts[0].State)
			}
			t.say("message %.8s, %s, %s to %s: %s%s", x.ID, clock(x.At), x.From, to, spoken(x), state)
		}
	case "usage":
		u, err := t.team.Usage(t.ctx)
		if err != nil {
			t.fail(err)
			return true
		}
		for _, x := range append(u.Members, u.Team) {
			who := x.Name
			if who == "" {
				who = "the whole team"
			}
			t.say("used by %s: %s tokens, %s", who, x.Words(), x.Money())
		}
	case "screen":
		t.screen(rest)
	case "changes":
		t.changesOf(rest)
	case "log":
		l, err := t.team.TaskLog(t.ctx, strings.TrimSpace(strings.TrimPrefix(rest, "task ")), 0)
		if err != nil {
			t.fail(err)
			return true
		}
		for _, line := range plainLog(l, time.Now()) {
			t.say("%s", line)
		}
	case "show":
		t.show(rest)
	case "menu":
		t.choices(rest)
	default:
		return false
	}
	return true
}

func (t *talk) model() *model {
	m := newModel()
	m.now, m.snap, m.have, m.name = time.Now(), t.snap, true, t.name
	return m
}

func (t *talk) member(m *model, x view.Member) {
	_, word := m.sign(x)
	what, since, _ := m.busy(x)
	parts := []string{x.Name, word}
	if !t.snap.Down.IsZero() && !x.State.Terminal() {
		parts[1] = "not known, as of " + clock(t.snap.Down) + " " + word
		what = ""
	}
	for _, s := range []string{what, since} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	t.say("member %s", view.Clean(strings.Join(parts, ", ")))
}

func (t *talk) task(x view.Task) {
	state := string(x.Status)
	switch {
	case x.Stuck:
		state = "stuck behind " + strings.Join(x.Waits, ", ")
	case len(x.Waits) > 0:
		state = "waits for " + strings.Join(x.Waits, ", ")
	}
	parts := []string{x.ID, x.Subject, state}
	if x.Owner != "" {
		parts = append(parts, x.Owner)
	}
	if x.Note != "" {
		parts = append(parts, x.Note)
	}
	t.say("task %s", view.Clean(strings.Join(parts, ", ")))
}

func (t *talk) screen(name string) {
	ctx, cancel := context.WithTimeout(t.ctx, 5*time.Second)
	defer cancel()
	err := t.team.Screen(ctx, name, func(f view.Frame) {
		lines := f.Lines
		for len(lines) > 0 && strings.TrimSpace(strip(lines[len(lines)-1])) == "" {
			lines = lines[:len(lines)-1]
		}
		for _, l := range lines[max(0, len(lines)-20):] {
			t.say("screen: %s", strings.TrimRight(strip(view.Colors(l)), " "))
		}
		cancel()
	})
	if err != nil && ctx.Err() == nil {
		t.fail(err)
	}
}

func (t *talk) changesOf(name string) {
	c, err := t.team.Changes(t.ctx, name, "")
	if err != nil {
		t.fail(err)
		return
	}
	if c.Why != "" {
		t.say("%s.", c.Why)
	}
	for _, f := range view.ParseDiff(c.Patch) {
		reviewed := ""
		if c.Reviewed[f.Path] {
			reviewed = ", reviewed"
		}
		t.say("file %s, %s, %d lines more, %d fewer%s", f.Path, f.State, f.Added, f.Removed, reviewed)
		for _, l := range f.Lines {
			switch l.Kind {
			case view.Added:
				t.say("line %d new: %s", l.New, l.Text)
			case view.Removed:
				t.say("line %d removed: %s", l.Old, l.Text)
			default:
			}
		}
	}
	for _, f := range c.Untracked {
		t.say("file %s, not in git", f)
	}
	for _, x := range c.Comments {
		where := x.Path
		if x.First > 0 {
			where += fmt.Sprintf(" line %d", x.First)
		}
		if x.Changed {
			where += ", changed since"
		}
		answer := ""
		if x.Answer != "" {
			answer = ", answer: " + x.Answer
		}
		t.say("comment %s, %s, %s: %s%s", x.Name, x.State, where, x.Text, answer)
	}
}

// thing is what a person names: a need by its number, request 3, a task, a member.
func (t *talk) thing(what string) (view.Target, bool) {
	kind, id, two := strings.Cut(what, " ")
	if !two {
		kind, id = "", what
	}
	id = strings.TrimPrefix(strings.TrimSpace(id), "#")
	m := t.model()
	for _, it := range append(m.needRows().items, append(m.memberRows().items, m.taskRows().items...)...) {
		on := it.on
		switch {
		case on.Need != nil && on.Need.Approval != 0 && (kind == "request" || kind == string(on.Need.Kind)) && fmt.Sprint(on.Need.Approval) == id,
			on.Thing == view.OnMember && on.Need == nil && (kind == "" || kind == "member") && on.Member != nil && on.Member.Name == id,
			on.Thing == view.OnTask && on.Need == nil && kind == "task" && on.Task.ID == id:
			return on, true
		}
	}
	if n, err := strconv.Atoi(id); err == nil && (kind == "" || kind == "need") && n >= 1 && n <= len(t.snap.Needs) {
		return m.needRows().items[n-1].on, true
	}
	if x := m.taskOf(id); x != nil && kind == "" {
		return view.Target{Thing: view.OnTask, Task: x, Member: m.memberOf(x.Owner)}, true
	}
	return view.Target{}, false
}

func (t *talk) show(what string) {
	on, ok := t.thing(what)
	if !ok {
		t.say("there is no %q: the number of a need, the name of a member, the id of a task.", what)
		return
	}
	m := t.model()
	switch {
	case on.Thing == view.OnApproval:
		r, err := t.team.Request(t.ctx, on.Need.Approval)
		if err != nil {
			t.fail(err)
			return
		}
		t.request(r)
	case on.Task != nil && on.Thing == view.OnTask:
		d, err := t.team.Task(t.ctx, on.Task.ID)
		if err != nil {
			t.fail(err)
			return
		}
		m.task[on.Task.ID] = d
		for _, l := range m.taskLines(*on.Task, 1<<20, 1<<20) {
			if strings.TrimSpace(strip(l)) != "" {
				t.say("%s", strip(l))
			}
		}
	case on.Member != nil:
		t.member(m, *on.Member)
		if on.Need != nil {
			t.say("%s", plain.Visible(on.Need.Text))
		}
		d, err := t.team.Member(t.ctx, on.Member.Name)
		if err != nil {
			t.fail(err)
			return
		}
		if d.Branch != "" {
			t.say("branch %s, %d commits ahead, %d files dirty", d.Branch, max(0, d.Ahead), d.Dirty)
		}
	case on.Need != nil:
		t.say("%s. %s", on.Need.Text, on.Need.Command)
	}
}

// choices are what can be done with a thing, as a numbered list.
func (t *talk) choices(what string) {
	on, ok := t.thing(what)
	if !ok && what != "" {
		t.say("there is no %q: the number of a need, the name of a member, the id of a task.", what)
		return
	}
	if !ok {
		on = view.Target{Thing: view.OnTeam}
	}
	t.menu = nil
	for _, a := range view.ActionsOn(on) {
		if t.p.ReadOnly && a.Operation != "" {
			continue
		}
		t.menu = append(t.menu, on.Deed(a))
		t.say("%d: %s", len(t.menu), a.Title)
	}
}
