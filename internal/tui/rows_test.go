package tui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// TestStateWithoutOwners checks that the state of a task is whole where no task has an owner.
func TestStateWithoutOwners(t *testing.T) {
	t.Parallel()
	s := sample()
	s.Tasks = []view.Task{{ID: "1", Subject: "lint", Status: team.TaskPending}}
	m := shownOf(s, 120, 36)
	m.choose("task:1")
	it, _ := m.row()
	if line := strip(it.line(50)); !strings.HasSuffix(strings.TrimRight(line, " "), "ready") || view.Width(line) != 50 {
		t.Errorf("%q", line)
	}
}

// TestGoneRowIsCurrent checks that the detail of a row that is gone shows its task as it is now.
func TestGoneRowIsCurrent(t *testing.T) {
	t.Parallel()
	s := crowd(8)
	m := shownOf(s, 120, 36)
	m.lastKey = epoch
	m.choose(needID(s.Needs[len(s.Needs)-1]))
	s.Needs = s.Needs[:len(s.Needs)-1]
	s.Tasks = slices.Clone(s.Tasks) // the row has one of the old ones
	for i := range s.Tasks {
		if s.Tasks[i].ID == "2" {
			s.Tasks[i].Status, s.Tasks[i].Owner, s.Tasks[i].Attempt = team.TaskPending, "", 0
		}
	}
	m.snap = s
	m.refresh()
	if it, _ := m.row(); !it.gone {
		t.Fatalf("%s is not gone", it.id)
	}
	shown := strings.Join(m.detail(&frame{}, 60, 10), "\n")
	if strings.Contains(shown, "failed") || !strings.Contains(shown, "pending") {
		t.Errorf("shown:\n%s", shown)
	}
}

// TestLimitedMember checks that a member at a usage limit has a sign and a word of its own, and the end of the
// limit, if that is known.
func TestLimitedMember(t *testing.T) {
	t.Parallel()
	until := epoch.Add(2 * time.Hour)
	s := crowd(3)
	s.Members[2].Activity, s.Members[2].LimitedTo = team.Limited, until
	s.Members[3].Activity = team.Limited
	s.Tasks = nil
	m := shownOf(s, 200, 50)
	shown := text(m.draw())
	for _, want := range []string{"◌ worker-2 limited  claude, until " + until.Local().Format("15:04"), "◌ worker-3 limited  claude "} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
	m.filter = "state:limited"
	m.refresh()
	if shown = text(m.draw()); !strings.Contains(shown, "MEMBERS 3, 2 of 3 shown") {
		t.Errorf("filtered:\n%s", shown)
	}
}

// TestMoreFailedTasks checks that the need of the failed tasks that are not listed leads to the tasks.
func TestMoreFailedTasks(t *testing.T) {
	t.Parallel()
	f := &fuzzed{}
	s := newOnPaper(t, f, f)
	n := view.Need{Kind: view.NeedTask, Text: "9 more tasks have failed", Command: "teamctl task ls --status failed"}
	s.m.snap.Needs = append(s.m.snap.Needs, n)
	s.m.refresh()
	s.m.choose(needID(n))
	if shown := s.look(0); !strings.Contains(shown, "› failed      team      9 more tasks have failed") || !strings.Contains(shown, "teamctl task ls --status failed") {
		t.Errorf("shown:\n%s", shown)
	}
	if s.types("enter"); s.m.at != inTasks {
		t.Errorf("enter leads to %s", s.m.at)
	}
}
