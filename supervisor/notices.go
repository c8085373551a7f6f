package supervisor

import (
	"context"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// The lead hears of what becomes of a teammate without asking: that it is idle, that
// it has failed for good, that it is gone. Each notice is written in the transaction of
// the change that it is about, so it is told once, whoever is killed. It is mailed at
// once, or else by Sweep.

// notice makes a notice of a frame. Ours hold plain strings, which can be encoded; if
// one could not, the change is written all the same.
func (s *Supervisor) notice(f inbox.Frame, key, summary string) *ledger.Notice {
	text, err := inbox.Encode(f)
	if err != nil {
		s.log.Error("encode a notice", "kind", f.Kind(), "err", err)
		return nil
	}
	return &ledger.Notice{Kind: f.Kind(), Text: text, IdemKey: key, Summary: inbox.Summary("", summary)}
}

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
	return s.notice(inbox.TeammateTerminated{
		Message: says, AgentID: m.row.AgentID, Status: status, OutputFile: s.cfg.Layout.Bundle(m.row.Name).Log(),
	}, "terminated:"+m.row.Generation, says)
}

// failed says that a member is given up, and why.
func (s *Supervisor) failed(m *member, reason string) *ledger.Notice {
	if exit := m.row.ExitText; exit != "" && !strings.Contains(reason, exit) {
		reason = strings.TrimPrefix(reason+": "+exit, ": ")
	}
	return s.notice(inbox.IdleNotification{
		From: m.row.Name, Timestamp: inbox.Timestamp(s.clock.Wall()), IdleReason: inbox.IdleFailed, FailureReason: reason,
	}, "failed:"+m.row.Generation, "failed: "+reason)
}

// turnOver says that an agent that cannot say so itself has ended its turn; broken is the
// error that has ended it, "" for none.
func (s *Supervisor) turnOver(m *member, broken string) *ledger.Notice {
	f := inbox.IdleNotification{From: m.row.Name, Timestamp: inbox.Timestamp(s.clock.Wall()), IdleReason: inbox.IdleAvailable}
	if !m.interrupted.IsZero() {
		f.IdleReason = inbox.IdleInterrupted
	}
	ctx, cancel := s.write()
	defer cancel()
	did, err := s.cfg.Ledger.DidSince(ctx, m.row, m.mark)
	if err != nil { // it is idle all the same
		s.log.Warn("read what a turn has done", "member", m.row.Name, "err", err)
	} else {
		f.CompletedTaskID, f.CompletedStatus, f.FailureReason, f.Summary = did.Task, string(did.Status), did.Why, did.Peers
		m.mark = did.Next
	}
	summary := "idle and ready for new work"
	if broken != "" {
		summary = f.Fail(broken)
	}
	n := s.notice(f, "", summary)
	if n != nil {
		n.Failed = broken != ""
	}
	return n
}

// maxTurnError bounds the words of an error that has ended a turn, in characters.
const maxTurnError = 500

// inOneLine is an error as it is kept and told.
func inOneLine(words string) string {
	words = strings.Join(strings.Fields(words), " ")
	if r := []rune(words); len(r) > maxTurnError {
		return string(r[:maxTurnError]) + "..."
	}
	return words
}

// markTurn begins what the next idle notice tells of, with a generation that was
// started or adopted.
func (s *Supervisor) markTurn(m *member) {
	m.interrupted, m.asks = time.Time{}, nil
	s.offers.Forget(m.row.SessionKey)
	ctx, cancel := s.write()
	defer cancel()
	did, err := s.cfg.Ledger.DidSince(ctx, m.row, ledger.TurnMark{})
	if err != nil {
		s.log.Warn("read what was said", "member", m.row.Name, "err", err)
	}
	m.mark = did.Next
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
