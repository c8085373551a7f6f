package supervisor

import (
	"context"
	"strings"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// The lead hears of what becomes of a teammate without asking: that it is idle, that
// it has failed for good, that it is gone. Each notice is written in the transaction of
// the change that it is about, so it is told once, whoever is killed. It is mailed at
// once, or else by Sweep.

// terminated says that a member is gone: by itself, or because it was stopped. One that
// never ran is not missed.
func (s *Supervisor) terminated(m *member) *ledger.Notice {
	if m.row.Generation == "" {
		return nil
	}
	status := inbox.NoticeCompleted
	if m.stop != nil || m.row.Desired == team.WantStopped {
		status = inbox.NoticeKilled
	}
	says := inbox.NoticeMessage(status, m.row.Name, "")
	return s.parts().Notice(inbox.TeammateTerminated{
		Message: says, AgentID: m.row.AgentID, Status: status, OutputFile: s.cfg.Layout.Bundle(m.row.Name).Log(),
	}, "terminated:"+m.row.Generation, says)
}

// failed says that a member is given up, and why.
func (s *Supervisor) failed(m *member, reason string) *ledger.Notice {
	if exit := m.row.ExitText; exit != "" && !strings.Contains(reason, exit) {
		reason = strings.TrimPrefix(reason+": "+exit, ": ")
	}
	return s.parts().Notice(inbox.IdleNotification{
		From: m.row.Name, Timestamp: inbox.Timestamp(s.clock.Wall()), IdleReason: inbox.IdleFailed, FailureReason: reason,
	}, "failed:"+m.row.Generation, "failed: "+reason)
}

// leave takes a member off the roster and tells of it, unless that was told already.
func (s *Supervisor) leave(ctx context.Context, m *member) error {
	n := s.terminated(m)
	if n == nil {
		return s.cfg.Ledger.RemoveMember(ctx, m.row.SessionKey)
	}
	_, ds, err := s.cfg.Ledger.Leave(ctx, m.row.SessionKey, *n)
	if err == nil && len(ds) > 0 {
		s.step(func(ctx context.Context) message {
			s.mailer().Deliver(ctx, ds)
			return nil
		})
	}
	return err
}

// mailNotice mails a notice that was written with a change, if it was not told before.
func (s *Supervisor) mailNotice(id string) {
	s.step(func(ctx context.Context) message {
		ds, err := s.cfg.Ledger.Deliveries(ctx, id) // none: told before
		if err != nil {
			return nil // Sweep mails it
		}
		s.mailer().Deliver(ctx, ds)
		return nil
	})
}
