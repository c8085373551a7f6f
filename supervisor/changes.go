package supervisor

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/publish"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// changePause is the least time between two looks at a ledger that keeps
// changing; it bounds what a flood of writes costs the
// supervisor. Where the looks themselves take long it rests in proportion.
const changePause = 10 * time.Millisecond

// lookRest is how many times as long as a look took is rested after it.
const lookRest = 2

// onLedgerChange schedules a look at what others wrote.
func (s *Supervisor) onLedgerChange() {
	if s.timers["changes"] == nil {
		s.after("changes", max(changePause, lookRest*s.looking), changed{})
	}
}

// changed looks at the events since the last look.
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
			s.ruled(e)
			s.offersOn(e)
			s.verifyOn(e)
			for _, one := range s.services {
				one.Event(e)
			}
			switch {
			case strings.HasPrefix(e.What, "member."):
				roster = true
			case e.What == "approval.asked":
				s.after("approvals", time.Millisecond, expireApprovals{})
			case strings.HasPrefix(e.What, "approval."):
				if e.What == "approval."+string(ledger.ApprovalApproved) {
					s.after("intents", time.Millisecond, openIntents{})
				}
				if id, err := strconv.ParseInt(e.ID, 10, 64); err == nil {
					s.answerAsk(id)
				}
			case e.What == quota.EventResumed, e.What == quota.EventBudgetChanged:
				s.resumed(e)
			case e.What == quota.EventLimited: // an agent that says itself what it does has written it
				limitsOver{}.apply(s)
			case e.What == "message.mailed":
				if m := s.find(e.Who); m != nil {
					s.deliver(m)
				}
			case e.What == "message.posted":
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

// posted looks at one message: an answer to a shutdown request is acted on, and
// what its poster has not mailed by the repair time is mailed by us.
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
			s.after(joinedTimer, time.Millisecond, expireJoined{})
		}
	default:
	}
	if s.timers["repair"] == nil {
		s.after("repair", s.policy.Repair, repair{})
	}
}

// repair mails what was posted and not mailed.
type repair struct{}

func (repair) apply(s *Supervisor) {
	delete(s.timers, "repair")
	s.sweep()
	s.pruneMail()
}

// sweep brings every message that is posted but not mailed into its mailbox.
func (s *Supervisor) sweep() {
	s.step(func(ctx context.Context) message {
		n, again, err := s.mailer().Sweep(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("mail posted messages", "err", err)
		}
		if n > 0 {
			s.log.Info("mailed what its poster had not", "messages", n)
		}
		if again > 0 {
			return sweepAgain(again)
		}
		return nil
	})
}

// litterAge is how old a temporary file is that no living writer works on.
const litterAge = time.Minute

// repairMail puts back mailboxes that are gone, and what others lost with the power
// of the machine, and removes what killed writers left; what is too young for that is
// looked at once more.
func (s *Supervisor) repairMail() {
	s.step(func(ctx context.Context) message {
		mailer := s.mailer()
		boot, _, err := s.clock.SinceBoot()
		if err == nil {
			err = mailer.AfterBoot(ctx, boot)
		}
		if err := errors.Join(err, mailer.Rebuild(ctx)); err != nil && ctx.Err() == nil {
			s.log.Warn("rebuild mailboxes", "err", err)
		}
		return nil
	})
	s.sweepLitter()
	s.after("litter", litterAge+time.Second, litter{})
}

// litter is looked for again.
type litter struct{}

func (litter) apply(s *Supervisor) {
	delete(s.timers, "litter")
	s.sweepLitter()
}

func (s *Supervisor) sweepLitter() {
	s.step(func(ctx context.Context) message {
		n, err := inbox.Sweep(s.cfg.Layout.Inboxes(), s.cfg.Layout.Locks(), litterAge)
		c, cerr := publish.Sweep(ctx, s.cfg.Layout)
		b, berr := sweepBundles(s.cfg.Layout, litterAge)
		if err := errors.Join(err, cerr, berr); err != nil && ctx.Err() == nil {
			s.log.Warn("remove what killed writers left", "err", err)
		}
		if n+c+b > 0 {
			s.log.Info("removed what killed writers left", "files", n+c+b)
		}
		return nil
	})
}

// sweepBundles removes what killed writers left in the members' bundles: secrets
// among it, so nobody waits for the next start of that member.
func sweepBundles(l team.Layout, age time.Duration) (n int, err error) {
	entries, err := os.ReadDir(l.Members())
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return 0, err
	}
	var errs []error
	for _, e := range entries {
		b := l.Bundle(e.Name())
		k, err := atomicfile.SweepTemp(string(b), age)
		n, errs = n+k+bundle.SweepOlder(b, age), append(errs, err)
	}
	return n, errors.Join(errs...)
}

// sweepAgain looks once more after a while.
type sweepAgain time.Duration

func (d sweepAgain) apply(s *Supervisor) { s.after("repair", time.Duration(d), repair{}) }

// refresh takes over what agents wrote about themselves (activity, readiness).
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
			s.tellMode(m)
		}
	}
}

// onNote takes a datagram of a shim or agent.
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
