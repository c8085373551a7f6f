package supervisor

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// The silence of a frozen agent is not evidence that it is ready, and does not hide that it is
// paused. It is waited for again once it continues.
func TestPausedIsNeitherReadyNorForgotten(t *testing.T) {
	for name, reports := range map[string]bool{"settled output": false, "its own word": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for within := 3 * time.Second; !pausedAndSilent(t, reports, within); within *= 2 {
				t.Logf("it was ready before it could be paused within %s", within)
			}
		})
	}
}

// pausedAndSilent pauses an agent that is taken for ready after a silence of within; false if the
// machine was so slow that it was ready before.
func pausedAndSilent(t *testing.T, reports bool, within time.Duration) bool {
	t.Helper()
	r := newRig(t)
	r.plans.reports = reports
	r.policy.Silent, r.policy.Start = within, within
	s := r.supervisor()
	r.spawn(s, "a", team.RestartNever)
	rows, err := s.PauseMembers(t.Context(), []string{"a"}, true)
	if err != nil || len(rows) != 1 || rows[0].Reason != team.WhyPaused {
		t.Fatalf("%+v, %v", rows, err)
	}
	if rows[0].Ready && !reports && rows[0].StartedAt+within.Milliseconds() < time.Now().UnixMilli() {
		return false
	}
	if rows[0].Ready {
		t.Fatalf("paused and ready: %+v", rows)
	}
	over := time.NewTimer(within + within/10)
	defer over.Stop()
	<-over.C
	if m, err := r.led.Member(t.Context(), "a"); err != nil || m.Reason != team.WhyPaused || m.Ready {
		t.Errorf("paused and then ready %v, reason %q, %v", m.Ready, m.Reason, err)
	}
	if _, err := s.PauseMembers(t.Context(), []string{"a"}, false); err != nil {
		t.Fatal(err)
	}
	r.wait("a", "waited for again", func(m ledger.Member) bool {
		return m.Reason != team.WhyPaused && (m.Ready != reports) && (!reports || m.Reason != "")
	})
	return true
}
