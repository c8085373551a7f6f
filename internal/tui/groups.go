package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

const (
	// fold is the number of members shown individually before idle ones share a row.
	fold = 12
	// grouped is the number of members from which those with alike names share a row, and alike how
	// many of them make a group.
	grouped = 50
	alike   = 3
)

// crew is members that share a row while it is closed.
type crew struct {
	id, title string
	members   []view.Member
}

// crews divides members, in order of importance, into those that share a row and those that have
// one of their own, which are crews without an id. A crew stands where its most important member
// would.
func (m *model) crews(list []view.Member) (out []crew) {
	names := map[string]int{}
	if len(list) > grouped && m.filter == "" {
		for _, x := range list {
			names[view.GroupOf(x.Name)]++
		}
	}
	at := map[string]int{}
	for _, x := range list {
		id, title := "", ""
		switch r := m.memberRank(x); {
		case view.GroupOf(x.Name) != "" && names[view.GroupOf(x.Name)] >= alike:
			title = view.GroupOf(x.Name)
			id = "members:" + title
		case len(list) > fold && r >= 4 && m.filter == "":
			title = map[bool]string{true: "idle", false: "not running"}[r == 4]
			id = "members:" + title
		}
		i, ok := at[id]
		if id == "" || !ok {
			i = len(out)
			at[id], out = i, append(out, crew{id: id, title: title})
		}
		out[i].members = append(out[i].members, x)
	}
	return out
}

// crewItem is the row of members that share one.
func (m *model) crewItem(c crew) item {
	open := m.opened[c.id]
	on := view.Target{Thing: view.OnTeam}
	if view.GroupOf(c.members[0].Name) == c.title {
		on = view.Target{Thing: view.OnGroup, Group: c.title}
	}
	return item{id: c.id, text: c.title, on: on, line: func(w int) string {
		sign := "+"
		if open {
			sign = "-"
		}
		if c.title == "idle" || c.title == "not running" {
			var names []string
			for _, x := range c.members {
				names = append(names, view.Clean(x.Name))
			}
			if !open {
				sign = "·"
			}
			return view.Cut(fmt.Sprintf("%s %d %s  %s", sign, len(names), c.title, strings.Join(names, " ")), w)
		}
		var words, signs []string
		counts := map[string]int{}
		for _, x := range c.members {
			s, word := m.sign(x)
			if counts[word] == 0 {
				words, signs = append(words, word), append(signs, s)
			}
			counts[word]++
		}
		line := fmt.Sprintf("%s %s %d", sign, m.style.Bold(view.Clean(c.title)), len(c.members))
		short := line
		for i, word := range words {
			line += fmt.Sprintf("  %s %d %s", signs[i], counts[word], word)
			short += fmt.Sprintf(" %s%d", signs[i], counts[word])
		}
		if view.Width(line) > w {
			line = short
		}
		return view.Cut(line, w)
	}}
}

// turnCrew opens or closes the row of members that share one; false for another row.
func (m *model) turnCrew(it item) bool {
	if !strings.HasPrefix(it.id, "members:") {
		return false
	}
	if m.opened == nil {
		m.opened = map[string]bool{}
	}
	m.opened[it.id] = !m.opened[it.id]
	m.sections = nil // the rows may move: a hand has asked for it
	m.refresh()
	m.choose(it.id)
	return true
}

// unfold opens the row that a member shares with others.
func (m *model) unfold(name string) {
	for _, c := range m.crews(m.ranked()) {
		if c.id != "" && !m.opened[c.id] && slices.ContainsFunc(c.members, func(x view.Member) bool { return x.Name == name }) {
			cursor := m.cursor
			m.turnCrew(item{id: c.id})
			m.cursor = cursor
		}
	}
}

// ranked returns the members without the lead, the most important first.
func (m *model) ranked() (list []view.Member) {
	for _, x := range m.snap.Members {
		if !x.Lead {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(a, b view.Member) int { return m.memberRank(a) - m.memberRank(b) })
	return list
}

func (m *model) memberRows() group {
	list := m.ranked()
	s := group{id: "members", title: fmt.Sprintf("MEMBERS %d", len(list))}
	crews := m.crews(list)
	name := 6
	for _, c := range crews {
		if c.id != "" && !m.opened[c.id] {
			continue
		}
		for _, x := range c.members {
			name = max(name, widest(18, view.Clean(x.Name)))
		}
	}
	var folded []item // stand last
	for _, c := range crews {
		to := &s.items
		if c.title == "idle" || c.title == "not running" {
			to = &folded
		}
		if c.id != "" {
			*to = append(*to, m.crewItem(c))
		}
		if c.id == "" || m.opened[c.id] {
			for _, x := range c.members {
				*to = append(*to, m.memberItem(x, name))
			}
		}
	}
	s.items = append(s.items, folded...)
	return s
}

// screenRows has the member of the screen as its only row, which is not drawn: actions are about it.
func (m *model) screenRows() []group {
	x := m.memberOf(m.screenOf)
	if x == nil {
		return nil
	}
	return []group{{id: "screen", items: []item{m.memberItem(*x, 0)}}}
}

// wordWidth returns the width of the column for the states of members: most are short.
func (m *model) wordWidth() int {
	if slices.ContainsFunc(m.snap.Members, func(x view.Member) bool { return x.State == team.Completed }) {
		return len(team.Completed)
	}
	return 8
}

// memberItem is the row of a member. What it shows is found when it is drawn: a team of 500 has
// more members than a screen has rows.
func (m *model) memberItem(x view.Member, name int) item {
	it := item{id: "member:" + x.Name, on: view.Target{Thing: view.OnMember, Member: &x}, line: func(w int) string {
		sign, word := m.sign(x)
		what, since, note := m.busy(x)
		who := m.style.Member(x.Color, view.Clean(x.Name))
		if w < 26 {
			return columns(w, " ", []string{sign, who, since}, []int{1, 0, min(4, view.Width(since))})
		}
		if w < 44 {
			return columns(w, " ", []string{sign, who, word, since}, []int{1, 0, widest(9, word), 4})
		}
		texts, widths := []string{sign, who, word, what, since}, []int{1, name, m.wordWidth(), 0, 4}
		if w >= 50 && note != "" {
			texts, widths = append(texts, note), append(widths, 7)
		}
		return columns(w, " ", texts, widths)
	}}
	if t, ok := m.snap.TaskOf(x.Name); ok {
		it.on.Task = &t
	}
	if m.filter != "" {
		_, word := m.sign(x)
		what, _, _ := m.busy(x)
		it.text = strings.Join([]string{x.Name, "state:" + word, word, "agent:" + x.Agent, what}, " ")
	}
	return it
}
