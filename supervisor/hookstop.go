package supervisor

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// stopsBack is how many recent events a new supervisor searches for stops that an earlier one did
// not carry out.
const stopsBack = 5000

// stopForHook stops a member at the request of a hook, unless it was started since.
func (s *Supervisor) stopForHook(e ledger.Event) {
	m := s.find(e.ID)
	if m == nil || m.row.Desired != team.WantRunning || m.row.StartedAt > e.At {
		return
	}
	s.log.Info("a hook stops a member", "member", m.row.Name, "reason", e.After)
	s.askStop(m, team.StopRequest{Reason: e.After, From: team.LeadName}, func(out team.Stopped) {
		s.log.Info("stopped by a hook", "member", out.Name, "outcome", out.Outcome)
	})
}

// stopsLeft carries out the stops that the previous supervisor did not.
func (s *Supervisor) stopsLeft() {
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	events, err := s.cfg.Ledger.Events(ctx, max(0, s.lastSeq-stopsBack), 0, ledger.EventFilter{What: team.EventHookStop})
	if err != nil {
		s.log.Warn("look for stops of hooks", "err", err)
		return
	}
	for _, e := range events {
		if e.Seq <= s.lastSeq {
			s.stopForHook(e)
		}
	}
}
