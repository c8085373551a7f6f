package hands

import (
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestCannotTake: why a member takes no tasks, and what changes that.
func TestCannotTake(t *testing.T) {
	t.Parallel()
	able := ledger.Member{Name: "ann", Role: team.RoleExecutor, Desired: team.WantRunning, Observed: team.Running}
	for _, tt := range []struct {
		why, remedy string
		change      func(*ledger.Member)
	}{
		{"", "", func(*ledger.Member) {}},
		{"", "", func(m *ledger.Member) { m.Observed = team.Backoff }},
		{"", "", func(m *ledger.Member) { m.Spec.Mode = team.ModeAcceptEdits }},
		{"is reviewer", "", func(m *ledger.Member) { m.Role = team.RoleReviewer }},
		{"is in mode plan", "teamctl mode ann default", func(m *ledger.Member) { m.Spec.Mode = team.ModePlan }},
		{"is stopped", "teamctl start ann", func(m *ledger.Member) { m.Desired = team.WantStopped }},
		{"has failed", "teamctl start ann", func(m *ledger.Member) { m.Observed = team.Failed }},
		{"is paused", "teamctl resume ann", func(m *ledger.Member) { m.Reason = team.WhyPaused }},
	} {
		m := able
		tt.change(&m)
		if why, remedy := cannotTake(m); why != tt.why || remedy != tt.remedy {
			t.Errorf("%q, %q; want %q, %q", why, remedy, tt.why, tt.remedy)
		}
	}
}

// TestShortage: a text names the first tasks and members of many.
func TestShortage(t *testing.T) {
	t.Parallel()
	h := Hands{}
	if s := h.Short(nil); s.Err().Error() != "no member can take pending tasks: the team has no members" || s.Hint != "teamctl spawn builder" {
		t.Errorf("%+v", s)
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		h.idle = append(h.idle, idleHand{name, "is stopped", "teamctl start " + name})
	}
	var left []ledger.Task
	for _, id := range []string{"1", "2", "3", "4", "5", "6"} {
		left = append(left, ledger.Task{ID: id})
	}
	s := h.Short(left)
	if s.What() != "tasks 1, 2, 3, 4, 5, ..." || s.Hint != "teamctl start a" ||
		s.Why != "a is stopped, b is stopped, c is stopped, d is stopped, e is stopped, 2 more" {
		t.Errorf("%s: %+v", s.What(), s)
	}
	h.Run = []string{"s-w"}
	if s := h.Short(left[:1]); s.Why != "workers take only tasks with a command, and 1 has none" {
		t.Errorf("%+v", s)
	}
}
