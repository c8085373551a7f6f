package tui

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

// look is a word that changes nothing; false for others.
func (t *talk) look(name, rest string) bool {
	switch name {
	case "needs", "members", "tasks", "show", "menu":
		t.old()
	}
	switch name {
	case "needs":
		t.say("%s.", needsWords(t.snap.Needs))
		asked := requestsOf(t.ctx, t.team, t.snap)
		t.numbers = nil
		for _, n := range t.snap.Needs {
			t.number(n)
			t.told[needID(n)] = n
		}
		for _, n := range t.snap.Needs {
			t.need(n, asked[n.Approval])
		}
	case "members":
		m := t.model()
		for _, x := range t.snap.Members {
			if !x.Lead {
				t.member(m, x)
			}
		}
	case "tasks":
		t.tasks(rest)
	case "mail":
		list, err := t.team.Mail(t.ctx)
		if err != nil {
			t.fail(err)
			return true
		}
		list = slices.SortedStableFunc(slices.Values(list), func(a, b view.Message) int { return a.At.Compare(b.At) })
		for _, x := range list[max(0, len(list)-20):] {
			t.message(x)
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
			line := fmt.Sprintf("used by %s: %s", who, spentWords(x, u.Team))
			if b := x.BudgetWords(); b != "" {
				line += ", " + b
			}
			t.say("%s", line)
		}
		for _, x := range u.Agents {
			t.say("used by all %s: %s", x.Agent, spentWords(x, u.Team))
		}
		for _, l := range u.Limits {
			t.say("limit: %s", l.String())
		}
		for _, x := range u.Tasks {
			t.say("used for task %s, %s: %s", x.Name, x.Subject, spentWords(x, u.Team))
		}
		if u.More > 0 {
			t.say("and for %s, which used less.", counted(u.More, "more task"))
		}
		if len(u.Tasks) > 0 {
			t.say("used without a task: %s", spentWords(u.Rest, u.Team))
		}
		for _, x := range u.Days {
			t.say("used on %s: %s", x.Name, spentWords(x, u.Team))
		}
	case "screen":
		t.screen(rest)
	case "changes":
		t.changesOf(rest)
	case "across":
		t.acrossOf(rest)
	case "merges":
		t.merges()
	case "log":
		t.log(rest)
	case "show":
		t.show(rest)
	case "menu":
		t.choices(rest)
	case "put-off", "take-up":
		t.putOff(name, rest)
	default:
		return false
	}
	return true
}

// spentWords says what was used, and which part of all that is.
func spentWords(x, all view.Spent) string {
	words := x.Words() + " tokens, "
	if part := x.Of(all); part != "" && x.Tokens != all.Tokens {
		words += part + ", "
	}
	return words + x.Money()
}

func (t *talk) model() *model {
	m := newModel()
	m.now, m.snap, m.have, m.name = time.Now(), t.snap, true, t.name
	if !t.lost.IsZero() {
		m.problem, m.problemAt = "the team cannot be read", t.lost
	}
	return m
}

func (t *talk) member(m *model, x view.Member) {
	_, word := m.sign(x)
	what, since, _ := m.busy(x)
	parts := []string{x.Name, word}
	if asOf := m.asOf(); !asOf.IsZero() && !x.State.Terminal() {
		parts[1] = "not known, as of " + clock(asOf) + " " + word
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

// plainTasks is how many found tasks the plain screen reads out.
const plainTasks = 20

// tasks writes the tasks that matter now, or those of all that a filter finds.
func (t *talk) tasks(filter string) {
	if filter == "" {
		for _, x := range taskOrder(t.snap.Tasks) {
			t.task(x)
		}
		if more := t.snap.Count().Total - len(t.snap.Tasks); more > 0 {
			t.say("and %s more.", counted(more, "task"))
		}
		return
	}
	m := t.model()
	found := slices.DeleteFunc(taskOrder(t.snap.Tasks), func(x view.Task) bool { return !view.Matches(x.Words(m.agentOf(x.Owner)), filter) })
	whole := t.snap.Count().Total <= len(t.snap.Tasks)
	for _, part := range view.TaskParts() {
		for q := (view.TaskQuery{Filter: filter, Part: part, Most: furtherRead}); !whole && len(found) <= plainTasks; {
			page, err := t.team.TaskPage(t.ctx, q)
			if err != nil {
				t.fail(err)
				return
			}
			for _, x := range page.Tasks {
				if !slices.ContainsFunc(found, func(y view.Task) bool { return y.ID == x.ID }) {
					found = append(found, x)
				}
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
	}
	whole = whole || len(found) <= plainTasks
	for _, x := range found[:min(len(found), plainTasks)] {
		t.task(x)
	}
	switch {
	case len(found) > plainTasks && !whole:
		t.say("and more: further words find less.")
	case len(found) > plainTasks:
		t.say("and %s more.", counted(len(found)-plainTasks, "task"))
	case len(found) == 0:
		t.say("no task has %s.", view.Clean(filter))
	}
}

// merges writes the merge lane, the newest first.
func (t *talk) merges() {
	list, err := t.team.Merges(t.ctx)
	if err != nil {
		t.fail(err)
		return
	}
	if len(list) == 0 {
		t.say("there are no merges.")
	}
	for _, x := range slices.Backward(list) {
		line := x.Title()
		if x.Member != "" {
			line += ", of " + view.Clean(x.Member)
		}
		if why := view.Clean(x.Why); why != "" {
			line += ", " + why
		}
		if len(x.Files) > 0 {
			line += ", in conflict: " + view.Clean(strings.Join(x.Files, ", "))
		}
		t.say("%s", line)
	}
}

// log writes the end of what a task's last attempt has printed, or the gate of merge N.
func (t *talk) log(of string) {
	if id, ok := strings.CutPrefix(of, "merge "); ok {
		t.gateLog(strings.TrimPrefix(strings.TrimSpace(id), "#"))
		return
	}
	l, err := t.team.TaskLog(t.ctx, strings.TrimSpace(strings.TrimPrefix(of, "task ")), 0)
	if err != nil {
		t.fail(err)
		return
	}
	for _, line := range plainLog(l, time.Now()) {
		t.say("%s", line)
	}
}

func (t *talk) gateLog(id string) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.say("%q is no number of a merge: merges lists them.", view.Clean(id))
		return
	}
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	err = t.team.GateLog(ctx, n, func(x view.Merge, p view.LogPart) {
		if ctx.Err() != nil {
			return
		}
		cancel() // what it prints from now on is not followed
		t.say("%s.", x.Title())
		for _, line := range plainPart(p) {
			t.say("%s", line)
		}
	})
	if err != nil && ctx.Err() == nil {
		t.fail(err)
	}
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
	if words := c.Compared(); words != "" {
		t.say("changes of %s %s.", c.Member, words)
	}
	for _, f := range view.ParseDiff(c.Patch) {
		reviewed := ""
		if c.Reviewed[f.Path] {
			reviewed = ", reviewed"
		}
		also := ""
		if others := c.Also[f.Path]; len(others) > 0 {
			also = ", also changed by " + strings.Join(others, " ")
		}
		t.say("file %s, %s, %s%s%s", f.Path, f.State, sizeWords(f), reviewed, also)
		t.lines(f, nil)
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
		t.say("comment %s, %s, %s: %s%s", x.Name, x.State, where, view.Clean(x.Text), view.Clean(answer))
	}
}

// acrossOf writes a file of a member as all members change it: "worker-1 cart.go".
func (t *talk) acrossOf(what string) {
	member, path, _ := strings.Cut(what, " ")
	if path = strings.TrimSpace(path); path == "" {
		t.say("which member and file: across MEMBER FILE.")
		return
	}
	list, err := view.ReadAcross(t.ctx, t.team, path, member)
	switch {
	case err != nil:
		t.fail(err)
		return
	case len(list) == 1:
		t.say("no other member changes %s.", path)
		return
	}
	t.say("file %s of %d members", path, len(list))
	for _, x := range list {
		said := []string{x.Changes.Member, x.Changes.Compared(), x.Why(), x.SameWords(), x.UnknownWords()}
		if x.File.Path != "" {
			said[2] = sizeWords(x.File)
		}
		t.say("member %s", strings.Join(slices.DeleteFunc(said, func(s string) bool { return s == "" }), ", "))
		t.lines(x.File, x.Marks)
	}
}

func sizeWords(f view.FileDiff) string {
	return fmt.Sprintf("%s more, %d fewer", counted(f.Added, "line"), f.Removed)
}

// lines writes the changed lines of a file, and which of them others touch, too.
func (t *talk) lines(f view.FileDiff, marks []bool) {
	for i, l := range f.Lines {
		also := ""
		if i < len(marks) && marks[i] {
			also = ", touched by others"
		}
		switch l.Kind {
		case view.Added:
			t.say("line %d new%s: %s", l.New, also, l.Text)
		case view.Removed:
			t.say("line %d removed%s: %s", l.Old, also, l.Text)
		default:
		}
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
	if n, err := strconv.Atoi(id); err == nil && (kind == "" || kind == "need") && n >= 1 && n <= len(t.numbers) {
		for _, it := range m.needRows().items {
			if it.id == t.numbers[n-1] {
				return it.on, true
			}
		}
		return view.Target{}, false
	}
	if x := m.taskOf(id); x != nil && kind == "" {
		return view.Target{Thing: view.OnTask, Task: x, Member: m.memberOf(x.Owner)}, true
	}
	return view.Target{}, false
}

// message writes a message in one line.
func (t *talk) message(x view.Message) {
	to := x.To
	if to == "" {
		to = "all"
	}
	state := view.Reached(x.Receipts)
	if state != "" {
		state = ", " + state
	}
	t.say("message %.8s, %s, %s to %s: %s%s", x.ID, clock(x.At), x.From, to, x.Line(), state)
}

// showMessage writes the message whose id begins so, with how far it has come to each.
func (t *talk) showMessage(id string) {
	list, err := t.team.Mail(t.ctx)
	if err != nil {
		t.fail(err)
		return
	}
	for _, x := range list {
		if id == "" || !strings.HasPrefix(x.ID, id) {
			continue
		}
		t.message(x)
		for line := range strings.SplitSeq(safe(x.Text), "\n") {
			t.say("text: %s", line)
		}
		for _, r := range x.Receipts {
			t.say("to %s: %s", r.To, receiptWords(r))
		}
		return
	}
	t.say("there is no message %q: mail lists them.", id)
}

func (t *talk) show(what string) {
	if id, ok := strings.CutPrefix(what, "message "); ok {
		t.showMessage(strings.TrimSpace(id))
		return
	}
	on, ok := t.thing(what)
	if !ok {
		t.nothing(what)
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
		t.sayLines("task "+on.Task.ID, m.taskLines(*on.Task, 1<<20, 1<<20))
	case on.Member != nil:
		t.member(m, *on.Member)
		if on.Need != nil {
			t.say("why: %s", on.Need.Text)
		}
		d, err := t.team.Member(t.ctx, on.Member.Name)
		if err != nil {
			t.fail(err)
			return
		}
		if d.Branch != "" {
			t.say("branch %s, %s ahead, %s dirty", d.Branch, counted(max(0, d.Ahead), "commit"), counted(d.Dirty, "file"))
		}
		for _, l := range d.Output {
			t.say("output: %s", l)
		}
		if on.Need != nil && on.Need.Message != "" {
			t.showMessage(on.Need.Message)
		}
	case on.Need != nil:
		t.say("why: %s. %s", on.Need.Text, on.Need.Command)
	}
}

// choices are what can be done with a thing, as a numbered list.
func (t *talk) choices(what string) {
	on, ok := t.thing(what)
	if !ok && what != "" {
		t.nothing(what)
		return
	}
	if !ok {
		on = view.Target{Thing: view.OnTeam}
	}
	t.menu = nil
	t.say("what can be done with %s:", t.called(on))
	for _, a := range view.ActionsOn(on) {
		if t.p.ReadOnly && a.Operation != "" {
			continue
		}
		t.menu = append(t.menu, on.Deed(a))
		t.say("%d: %s", len(t.menu), a.Title)
	}
}

// nothing says that there is no such thing, or no longer.
func (t *talk) nothing(what string) {
	if n, err := strconv.Atoi(strings.TrimPrefix(what, "need ")); err == nil && n >= 1 && n <= len(t.numbers) {
		t.say("need %d is gone: needs lists what needs you.", n)
		return
	}
	t.say("there is no %q: the number of a need, the name of a member, the id of a task.", what)
}

// called names the target of actions.
func (t *talk) called(on view.Target) string {
	switch {
	case on.Need != nil && on.Thing != view.OnTask:
		return needName(*on.Need)
	case on.Task != nil:
		return "task " + on.Task.ID + " " + view.Clean(on.Task.Subject)
	case on.Member != nil:
		return "member " + view.Clean(on.Member.Name)
	}
	return "team " + view.Clean(t.name)
}

// counted is a number of things: "1 line", "2 lines".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
