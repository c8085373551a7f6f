package supervisor

import (
	"context"
	"strings"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// The lead is notified when a member goes idle, fails permanently, or ends. Each notice is written
// in the transaction of its change, so it is sent once, whichever process is killed. It is mailed
// at once, or later by the mailbox service.

// terminated returns the notice that a member has ended, by itself or by a stop; nil for one that
// never ran.
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

// failed returns the notice that a member is given up, with the reason.
func (s *Supervisor) failed(m *member, reason string) *ledger.Notice {
	if exit := m.row.ExitText; exit != "" && !strings.Contains(reason, exit) {
		reason = strings.TrimPrefix(reason+": "+exit, ": ")
	}
	return s.parts().Notice(inbox.IdleNotification{
		From: m.row.Name, Timestamp: inbox.Timestamp(s.clock.Wall()), IdleReason: inbox.IdleFailed, FailureReason: reason,
	}, "failed:"+m.row.Generation, "failed: "+reason)
}

// leave removes a member from the roster and notifies the lead, unless that was done before.
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

// mailNotice mails a notice that was written with a change, unless it was sent before.
func (s *Supervisor) mailNotice(id string) {
	s.step(func(ctx context.Context) message {
		ds, err := s.cfg.Ledger.Deliveries(ctx, id) // none: sent before
		if err != nil {
			return nil // the mailbox service mails it
		}
		s.mailer().Deliver(ctx, ds)
		return nil
	})
}
