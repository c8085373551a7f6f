package supervisor

import (
	"context"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// changePause is the minimum time between two looks at a ledger that keeps changing; it bounds the
// supervisor's cost of a flood of writes. If the looks themselves take long, the pause grows in
// proportion.
const changePause = 10 * time.Millisecond

// lookRest is the pause after a look, as a multiple of its duration.
const lookRest = 2

// onLedgerChange schedules a look at changes made by others.
func (s *Supervisor) onLedgerChange() {
	if s.timers["changes"] == nil {
		s.after("changes", max(changePause, lookRest*s.looking), changed{})
	}
}

// changed makes the loop read the events since the last look.
type changed struct{}

func (changed) apply(s *Supervisor) {
	delete(s.timers, "changes")
	began := time.Now()
	defer func() { s.looking = time.Since(began) }()
	if s.cfg.Woken != nil {
		s.cfg.Woken()
	}
	ctx, cancel := s.write()
	defer cancel()
	roster := false
	for {
		events, err := s.cfg.Ledger.Events(ctx, s.lastSeq, 500, ledger.EventFilter{})
		if err != nil {
			s.log.Warn("read events", "err", err)
			return
		}
		for _, e := range events {
			s.lastSeq = e.Seq
			for _, one := range s.services {
				one.Event(e)
			}
			switch {
			case strings.HasPrefix(e.What, team.MemberEvents):
				roster = true
			case e.What == team.EventHookStop:
				s.stopForHook(e)
			case e.What == team.EventMessagePosted:
				s.posted(ctx, e.ID)
			}
		}
		if len(events) < 500 {
			break
		}
	}
	if roster {
		s.refresh(ctx)
	}
	s.lookServices(roster)
}

// posted handles one message: an answer to a shutdown request takes effect.
func (s *Supervisor) posted(ctx context.Context, id string) {
	msg, err := s.cfg.Ledger.Message(ctx, id)
	if err != nil {
		s.log.Warn("read message", "id", id, "err", err)
		return
	}
	switch msg.Kind {
	case team.KindShutdownApproved, team.KindShutdownRejected:
		s.answered(msg)
	case team.KindShutdownRequest:
		if len(msg.Payload) > 0 {
			s.joined.Asked()
		}
	default:
	}
}

// refresh reads what agents wrote about themselves (activity, readiness).
func (s *Supervisor) refresh(ctx context.Context) {
	rows, err := s.cfg.Ledger.Members(ctx, false)
	if err != nil {
		s.log.Warn("read members", "err", err)
		return
	}
	for _, r := range rows {
		m := s.members[r.SessionKey]
		if m == nil || m.row.Generation != r.Generation || m.row.Observed != r.Observed {
			continue
		}
		moved := m.row.Spec.Mode != r.Spec.Mode
		m.row = r
		if moved {
			s.delivery.SetMode(m.row.SessionKey)
		}
	}
}

// onNote handles a datagram of a shim or agent.
func (s *Supervisor) onNote(n Note) {
	if n.Event == "seen" {
		s.onSeen(n)
		return
	}
	if n.Event != "ready" {
		return
	}
	for _, m := range s.members {
		if m.row.Name == n.Agent && m.row.Generation == n.Generation && !m.row.Ready {
			s.markReady(m, "its own word")
		}
	}
}
