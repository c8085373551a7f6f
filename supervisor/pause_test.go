package supervisor

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// The silence of a frozen agent is no evidence that it is ready, and does not hide that it is
// paused. It is waited for again once it continues.
func TestPausedIsNeitherReadyNorForgotten(t *testing.T) {
	for name, reports := range map[string]bool{"settled output": false, "its own word": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.plans.reports = reports
			r.policy.Silent, r.policy.Start = 3*time.Second, 3*time.Second
			s := r.supervisor()
			r.spawn(s, "a", team.RestartNever)
			rows, err := s.PauseMembers(t.Context(), []string{"a"}, true)
			if err != nil || len(rows) != 1 || rows[0].Reason != team.WhyPaused || rows[0].Ready {
				t.Fatalf("%+v, %v", rows, err)
			}
			over := time.NewTimer(3300 * time.Millisecond)
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
		})
	}
}
