package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// TestAlerts checks that a terminal without focus is told of each need once, when the need begins, with
// several needs in one alert, and is told once that all tasks have ended.
func TestAlerts(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(0), 120, 36)
	m.snap.Members = append(m.snap.Members, view.Member{Name: "ann", State: team.Running, Activity: team.Working}, view.Member{Name: "bob", State: team.Running, Activity: team.Working})
	a := &alerts{}
	focused := false
	asks := func(n int) {
		m.snap.Needs = append(m.snap.Needs, view.Need{Kind: view.NeedPermission, Member: "ann", Approval: int64(n), Text: fmt.Sprintf("Bash: make %d\x1b[2J", n)})
	}
	// pass lets time pass, as the screen does: it looks whenever something is due.
	pass := func(d time.Duration) (told []string) {
		t.Helper()
		for end := m.now.Add(d); ; {
			if title, text := a.look(m, focused); text != "" {
				told = append(told, text)
				if title != "teamctl "+m.name {
					t.Errorf("title %q", title)
				}
			}
			w := a.wait(m.now)
			if w == 0 || m.now.Add(w).After(end) {
				m.now = end
				return told
			}
			m.now = m.now.Add(w)
		}
	}
	be := func(what string, got []string, want ...string) {
		t.Helper()
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: %q; want %q", what, got, want)
		}
	}
	asks(1)
	be("what was there before", pass(time.Minute))
	asks(2)
	be("the moment it begins", pass(0))
	got := pass(time.Minute)
	if len(got) != 1 || !strings.HasPrefix(got[0], "ann: permission, Bash: make 2") || strings.ContainsRune(got[0], 0x1b) {
		t.Errorf("one: %q", got)
	}
	be("again", pass(time.Hour))
	for n := 3; n <= 5; n++ {
		asks(n)
		be("in company", pass(200*time.Millisecond))
	}
	be("three", pass(2*time.Second), "3 need you: ann permission, ann permission, ann permission")
	for n := 6; n <= 10; n++ {
		asks(n)
		be("soon after", pass(time.Second))
	}
	be("five", pass(time.Minute), "5 need you: ann permission, ann permission, ann permission, ann permission and 1 more")
	asks(11)
	be("answered at once", pass(500*time.Millisecond))
	m.snap.Needs = m.snap.Needs[:len(m.snap.Needs)-1]
	be("answered at once", pass(time.Minute))
	focused = true
	asks(12)
	be("with the focus", pass(time.Minute))
	focused = false
	be("seen with the focus", pass(time.Minute))
	last := len(m.snap.Needs)
	m.snap.Needs = append(m.snap.Needs, view.Need{Kind: view.NeedHands, Text: "no member can take task 5: bob is stopped"})
	be("tasks that no member can take", pass(time.Minute), "no member can take task 5: bob is stopped")
	m.snap.Needs[last].Text = "no member can take tasks 5, 6: bob is stopped"
	be("more of them", pass(time.Minute))
	m.snap.Needs = m.snap.Needs[:last]

	work := func(name string, doing team.Activity) {
		for i := range m.snap.Members {
			if m.snap.Members[i].Name == name {
				m.snap.Members[i].Activity = doing
			}
		}
	}
	m.snap.Tasks = []view.Task{{ID: "1", Status: team.TaskCompleted}, {ID: "2", Status: team.TaskCompleted}}
	work("ann", team.Idle)
	be("a turn that ends while another works", pass(time.Minute))
	work("bob", team.Idle)
	be("a moment of rest", pass(alertCalm-time.Second))
	work("bob", team.Working)
	be("goes on", pass(time.Minute))
	work("bob", team.Idle)
	be("the end", pass(time.Minute), "all is done: 2 of 2 tasks are completed")
	be("the end, again", pass(time.Hour))
	work("bob", team.Working)
	pass(time.Second)
	work("bob", team.Idle)
	focused = true
	pass(time.Minute)
	focused = false
	be("an end that was seen", pass(time.Minute))
	m.snap.Tasks[1].Status = team.TaskFailed
	work("bob", team.Working)
	pass(time.Second)
	work("bob", team.Idle)
	be("with a failed task", pass(time.Minute), "nothing is left to do, 1 failed: 1 of 2 tasks are completed")

	m.name = "other"
	m.snap.Needs = nil
	asks(1)
	be("another team", pass(time.Minute))
}
