package agent

import (
	"context"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestEndedTurnWaitsForNobody checks that a turn which is ended as it begins to wait for a person leaves
// no wait behind, with which its member would not be shown as working any more.
func TestEndedTurnWaitsForNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	row := r.join("dev", "session-dev", team.RoleExecutor)
	s := &server{asks: make(chan ask, 1)} // one is taken at any time
	s.worker = newWorker(Identity{AgentID: "dev@demo", Name: "dev", Team: "demo", Session: row.SessionKey}, Env{Ledger: r.led})
	quit, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case a := <-s.asks:
				a.do(t.Context())
				close(a.done)
			case <-quit:
				return
			}
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := &desk{server: s, run: &running{job: ledger.TurnJob{ID: 1, Session: row.SessionKey}}}
	for range 20 {
		if err := d.Wait(ctx, 0, team.WaitPermission, "may it?"); err == nil {
			t.Error("an ended turn has waited")
		}
		if _, err := d.Pause(ctx, team.WaitPermission, "may it?"); err == nil {
			t.Error("an ended turn has paused")
		}
	}
	close(quit)
	<-over
	if s.waiting != 0 {
		t.Errorf("%d turns wait", s.waiting)
	}
}
