package supervisor

import (
	"context"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/approval"
	"github.com/teamctl/teamctl/team"
)

// A turn that somebody has ended: the lead hears that it was interrupted (R135), and
// what the agent had asked for in it waits no longer (U26). That it is over is known
// when the agent is seen idle after the interrupt, and not before.

// notInterrupted takes back that a turn was ended: the agent could not be told.
type notInterrupted struct{ session, generation string }

func (n notInterrupted) apply(s *Supervisor) {
	if m := s.members[n.session]; m != nil && m.row.Generation == n.generation {
		m.interrupted = time.Time{}
	}
}

// turnGoes keeps whether the turn that was seen is an interrupted one: what begins after
// the interrupt is another.
func (s *Supervisor) turnGoes(m *member, o team.Observation) {
	switch {
	case o.Interrupted:
		m.interrupted = o.At
	case o.Activity == team.Working && o.At.After(m.interrupted):
		m.interrupted = time.Time{}
	}
}

// turnBroken ends what an interrupted turn has asked for, once it is over.
func (s *Supervisor) turnBroken(m *member) {
	v := m.seen.Verdict(time.Now())
	if m.interrupted.IsZero() || v.Activity != team.Idle || v.At.Before(m.interrupted) {
		return
	}
	at := m.interrupted
	m.interrupted = time.Time{}
	const why = "its turn was interrupted"
	if m.line != nil {
		for request := range m.line.asked {
			s.settledElsewhere(m, request, why)
		}
	}
	row := m.row
	s.step(func(ctx context.Context) message {
		pending, err := s.cfg.Ledger.Approvals(ctx, ledger.ApprovalFilter{State: ledger.ApprovalPending, Session: row.SessionKey})
		if err != nil {
			s.log.Warn("read what an interrupted turn has asked for", "member", row.Name, "err", err)
			return nil
		}
		for _, a := range pending {
			if strings.HasPrefix(a.RequestID, approval.HookRequest) && a.CreatedAt <= at.UnixMilli() {
				s.withdraw(ctx, row.Name, a.ID, why)
			}
		}
		return nil
	})
}

// withdraw ends a request that nobody waits for an answer to any more.
func (s *Supervisor) withdraw(ctx context.Context, name string, id int64, why string) {
	if err := s.cfg.Ledger.Withdraw(ctx, id, name, why); err != nil {
		s.log.Warn("withdraw a request", "member", name, "approval", id, "err", err)
	}
}
