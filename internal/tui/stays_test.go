package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// TestSelectedRowStays checks that the selected row keeps its line when rows come above it, in its list or in
// the lists above, and when rows go above it as far as its list can scroll.
func TestSelectedRowStays(t *testing.T) {
	t.Parallel()
	need := func(s *view.Snapshot) {
		s.Needs = append([]view.Need{{Kind: view.NeedPermission, Member: "new", Approval: 99, Text: "x", Since: ago(time.Hour)}}, s.Needs...)
	}
	member := func(s *view.Snapshot) {
		s.Members = append([]view.Member{s.Members[0], {Name: "new", State: team.Running, Activity: team.Waiting}}, s.Members[1:]...)
	}
	task := func(s *view.Snapshot) {
		s.Tasks = append([]view.Task{{ID: "99", Subject: "new", Status: team.TaskInProgress, Began: epoch}}, s.Tasks...)
	}
	var ran int
	for _, size := range [][2]int{{200, 50}, {120, 36}, {100, 20}, {80, 24}, {40, 10}} {
		for _, at := range []place{inTeam, inNeeds, inTasks} {
			for list, comes := range map[string]func(*view.Snapshot){"needs": need, "members": member, "tasks": task} {
				name := fmt.Sprintf("%v %s %s", size, at, list)
				m := shownOf(crowd(8), size[0], size[1])
				m.at, m.tab = at, map[string]int{"members": 1, "tasks": 2}[list]
				m.refresh()
				i := slices.IndexFunc(m.sections, func(s group) bool { return s.id == list })
				if i < 0 {
					continue
				}
				ran++
				m.choose(m.sections[i].items[1].id)
				line := func() int {
					m.lastKey = time.Time{}
					m.refresh()
					return slices.IndexFunc(strings.Split(text(m.draw()), "\n"), func(l string) bool { return strings.Contains(l, "›") })
				}
				before := line()
				comes(&m.snap)
				if now := line(); now != before {
					t.Errorf("%s: from line %d to %d:\n%s", name, before, now, text(m.draw()))
				}
				comes(&m.snap)
				if list != "needs" && at == inTeam && !m.small() {
					need(&m.snap)
				}
				if now := line(); now != before {
					t.Errorf("%s: rows in two lists: from line %d to %d:\n%s", name, before, now, text(m.draw()))
				}
			}
		}
	}
	if ran < 20 {
		t.Errorf("%d lists", ran)
	}

	m := shownOf(crowd(50), 120, 12)
	m.at = inNeeds
	m.refresh()
	m.choose(m.sections[0].items[14].id)
	m.draw()
	y, top := m.stays.y, m.top["needs"]
	m.snap.Needs = m.snap.Needs[2:]
	m.refresh()
	if m.draw(); m.stays.y != y || m.top["needs"] != top-2 {
		t.Errorf("rows that go: from line %d to %d, scrolled from %d to %d", y, m.stays.y, top, m.top["needs"])
	}
	m.move(1)
	if m.draw(); m.stays.y != y+1 && m.stays.y != y {
		t.Errorf("a row down: from line %d to %d", y, m.stays.y)
	}
}

// TestRowsAboveAreTold checks that the title says how many rows are above a selected row that is the first
// visible one.
func TestRowsAboveAreTold(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(8), 120, 36)
	m.choose(m.sections[0].items[0].id)
	m.draw()
	m.snap.Needs = append([]view.Need{{Kind: view.NeedSupervisor, Text: "x"}}, m.snap.Needs...)
	m.refresh()
	if shown := text(m.draw()); !strings.Contains(shown, "! 5 NEED YOU  ↑ 1 above") || strings.Contains(shown, "supervisor") {
		t.Errorf("shown:\n%s", shown)
	}
	m.move(-1)
	if shown := text(m.draw()); strings.Contains(shown, "above") || !strings.Contains(shown, "› supervisor") {
		t.Errorf("after the key up:\n%s", shown)
	}
}
