package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// TestSoleMember checks that a team of one member has no list of members on a large screen, that its screen is
// there whatever is selected, as far as there is room, and that its row can be selected and clicked.
func TestSoleMember(t *testing.T) {
	t.Parallel()
	x := &theater{}
	s := newOnPaper(t, x, x)
	s.apply(func(m *model) {
		m.snap = crowd(1)
		m.cols, m.rows, m.sections, m.cursor = 120, 36, nil, ""
	})
	s.look(0)
	for _, id := range []string{needID(s.m.snap.Needs[0]), "member:worker-1", "task:3"} {
		s.selects(id)
		s.shows("prompt 1 of worker-1")
		drawn := s.look(0)
		if strings.Contains(drawn, "MEMBERS") || !strings.Contains(drawn, "screen, live") {
			t.Errorf("%s is selected:\n%s", id, drawn)
		}
	}
	s.presses("g")
	s.selects("member:worker-1")
	s.presses("m")
	s.shows("message worker-1: what to tell it")
	s.presses("esc", "g")
	s.look(time.Second)
	for _, g := range s.frame.regions {
		if g.id == "member:worker-1" && !strings.Contains(strip(s.frame.lines[g.y]), "member  ") {
			t.Errorf("its region is line %d: %s", g.y, s.frame.lines[g.y])
		}
	}

	s.apply(func(m *model) {
		m.snap.Members = append(m.snap.Members, view.Member{Name: "second", State: team.Running})
	})
	s.look(time.Hour)
	s.shows("MEMBERS 2")
	m := shownOf(crowd(1), 80, 24)
	m.tab = 1
	if drawn := text(m.draw()); !strings.Contains(drawn, "MEMBERS 1") {
		t.Errorf("a small screen:\n%s", drawn)
	}
}
