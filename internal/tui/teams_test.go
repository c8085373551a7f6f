package tui

import (
	"context"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
)

// several is a machine with some teams.
type several struct {
	fuzzed
	list []view.Glance
}

func (s *several) Teams(_ context.Context, _ <-chan bool, each func([]view.Glance)) error {
	each(s.list)
	return nil
}

// TestNextNeedOfAnotherTeam checks that the key for the next need goes on to the next team that needs the
// person after the last need of this one, and round, and begins at the selected team in the list.
func TestNextNeedOfAnotherTeam(t *testing.T) {
	t.Parallel()
	home := &several{list: []view.Glance{{Team: "a", Needs: 1}, {Team: "demo", Needs: 2}, {Team: "quiet"}, {Team: "z", Needs: 1}}}
	m := shownOf(sample(), 120, 36)
	r, keys, done := inHand(t, m, home)
	r.ui.Home, r.stopTeam = home, func() {}
	defer func() { r.leaveTeam() }()
	keys("g", ".")
	if at := m.snap.Needs[1]; m.cursor != needID(at) || m.name != "demo" {
		t.Fatalf("the second need: %s, %s", m.name, m.cursor)
	}
	keys(".")
	done()
	if m.name != "z" || m.have {
		t.Fatalf("after the last one: %s", m.name)
	}
	if got := nextTeam(home.list, "z", false); got != "a" {
		t.Errorf("after the last team: %q", got)
	}
	for from, want := range map[string]string{"a": "a", "demo": "demo", "quiet": "z", "z": "z", "gone": "a"} {
		if got := nextTeam(home.list, from, true); got != want {
			t.Errorf("from %s: %q, want %q", from, got, want)
		}
	}
}

// TestTeamsList checks that the list of teams selects the one that was left, and has the cost of each.
func TestTeamsList(t *testing.T) {
	t.Parallel()
	m := shownOf(sample(), 100, 20)
	m.at, m.sections, m.cursor = inTeams, nil, ""
	r, _, _ := inHand(t, m, &fuzzed{})
	r.glances([]view.Glance{{Team: "a", Cost: "$12.40"}, {Team: "demo", Cost: "-", Done: 5, Total: 12}})
	m.refresh()
	if m.cursor != "team:demo" {
		t.Errorf("selected: %s", m.cursor)
	}
	lines := strings.Join(m.draw().lines, "\n")
	for _, want := range []string{"  a     $12.40\n", "› demo       -  5/12\n"} {
		if !strings.Contains(lines, want) {
			t.Errorf("no %q in\n%s", want, lines)
		}
	}
	m.cursor = "team:a"
	r.glances(m.teams)
	if m.cursor != "team:a" {
		t.Errorf("after a change: %s", m.cursor)
	}
}
