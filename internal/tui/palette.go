package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/view"
)

func b2i(b bool) int { return map[bool]int{true: 1}[b] }

// awayActions returns the actions that are not among the choices: the selected row is not what they
// are for, or its state does not allow them. The list of teams has none.
func (m *model) awayActions(here []choice) []choice {
	if m.at == inTeams {
		return nil
	}
	var out []choice
	for _, a := range view.Actions() {
		if m.readOnly && a.Operation != "" || slices.ContainsFunc(here, func(c choice) bool { return c.action.ID == a.ID }) {
			continue
		}
		out = append(out, choice{title: a.Title, key: m.keys.first(a.ID), line: a.Line(view.Deed{}), action: a, away: true})
	}
	return out
}

// drawChoices draws the choices around the selected one in a number of rows, those that do nothing
// here below a heading.
func (m *model) drawChoices(f *frame, list []choice, rows int) {
	o := &m.over
	o.at = clamp(o.at, 0, max(0, len(list)-1))
	key, wide := 4, 12
	for _, c := range list {
		key = max(key, view.Width(c.key))
		if c.line != "" {
			wide = max(wide, view.Width(c.title))
		}
	}
	key, wide = min(key, m.cols/4), min(wide, m.cols/2)
	type line struct {
		text string
		of   int // a choice, -1 for none
	}
	var lines []line
	first, last := 0, 0 // of the selected choice
	for i, c := range list {
		if c.away && (i == 0 || !list[i-1].away) {
			lines = append(lines, line{m.style.Dim(" NOT ON THIS ROW, OR IN OTHER PLACES"), -1})
		}
		texts := []string{columns(m.cols-3, "  ", []string{c.key, c.title, m.style.Dim(c.line)}, []int{key, wide, 0})}
		if c.line == "" {
			texts = nil
			for j, part := range wrapped(c.title, max(1, m.cols-5-key)) {
				texts = append(texts, view.Pad(map[bool]string{true: c.key}[j == 0], key)+"  "+part)
			}
		}
		if i == o.at {
			first, last = len(lines), len(lines)+len(texts)-1
		}
		for j, t := range texts {
			mark := "  "
			if i == o.at && j == 0 {
				mark = "› "
			}
			if t = mark + t; i == o.at {
				t = m.style.Bold(t)
			}
			lines = append(lines, line{" " + t, i})
		}
	}
	top := min(max(0, last-rows+1), first)
	for _, l := range lines[min(top, len(lines)):min(len(lines), top+rows)] {
		if l.of >= 0 {
			f.regions = append(f.regions, region{y: len(f.lines), left: 0, right: m.cols, id: fmt.Sprintf("choice:%d", l.of)})
		}
		f.add(l.text)
	}
}

// placesWords says how to get to places.
func placesWords(in []place) string {
	var names []string
	for _, p := range in {
		names = append(names, string(p))
	}
	return "it is for " + strings.Join(names, ", ")
}

// chooseFor lets the person choose what an action applies to, or says why it applies to nothing.
func (r *run) chooseFor(a view.Action) {
	m := r.m
	if m.at == inTeams || m.name == "" || !m.have {
		m.say(m.noAction(), true)
		return
	}
	var list []choice
	on := func(row, title string, t view.Target) {
		if slices.Contains(a.On, t.Thing) && (a.When == nil || a.When(t)) {
			list = append(list, choice{title: title, line: a.Line(t.Deed(a)), action: a, row: row})
		}
	}
	for i, n := range m.snap.Needs {
		if n.Approval != 0 {
			on(needID(n), fmt.Sprintf("%s %d of %s", needWord(n), n.Approval, view.Clean(n.Member)), view.Target{Thing: view.OnApproval, Need: &m.snap.Needs[i], Member: m.memberOf(n.Member)})
		}
	}
	for i, x := range m.snap.Members {
		if !x.Lead {
			on("member:"+x.Name, view.Clean(x.Name), view.Target{Thing: view.OnMember, Member: &m.snap.Members[i]})
		}
	}
	for i, t := range m.snap.Tasks {
		on(taskID(t), view.Clean(t.ID+" "+t.Subject), view.Target{Thing: view.OnTask, Task: &m.snap.Tasks[i], Member: m.memberOf(t.Owner)})
	}
	if len(list) > 0 {
		m.over = overlay{kind: choiceOverlay, title: a.Title + ": of what", choices: list}
		return
	}
	var things []string
	for _, t := range a.On {
		things = append(things, string(t))
	}
	why := "no " + strings.Join(things, " and no ") + " allows it now"
	switch {
	case slices.Contains(a.On, view.OnMessage):
		why = "select a message first: " + m.keys.hint("view-mail", "mail")
	case slices.Contains(a.On, view.OnChange):
		why = "select a file or line of changes first: " + m.keys.hint("changes", "on a member")
	}
	m.say("not here: "+a.Title+"; "+why, true)
}

// selectFor selects the row of a choice, in the place that has it.
func (r *run) selectFor(c choice) bool {
	m := r.m
	kind, name, _ := strings.Cut(c.row, ":")
	m.filter = ""
	switch kind {
	case "member":
		r.goTo(inTeam)
		m.refresh()
		m.unfold(name)
	case "task":
		r.goTo(inTasks)
	default:
		r.goTo(inNeeds)
	}
	m.refresh()
	m.choose(c.row)
	it, ok := m.row()
	if !ok || it.gone || !slices.ContainsFunc(m.actions(), func(a view.Action) bool { return a.ID == c.action.ID }) {
		m.say(c.action.Title+" is no longer possible there", true)
		return false
	}
	return true
}
