package supervisor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// Idle agents of other programs do not look at the board by themselves, so they are
// told of a task that is ready for them (U5, U6): each of one, and no two of the same
// one, until who was told has had a turn, or has not begun one for a while. The ledger
// keeps who was told of what, so it is told once, whoever is killed. Built-in workers
// take tasks without being told.

// offering is a task that an idle member was told of.
type offering struct {
	task string
	at   time.Time
}

// offerSoon looks for tasks to offer after a moment: whoever makes tasks may assign
// them next, and workers take theirs first.
func (s *Supervisor) offerSoon() {
	if s.timers["offers"] == nil {
		s.after("offers", s.policy.Offer, offerTasks{})
	}
}

// offersOn looks at one event that may have made a task ready, or a member free for one.
// A member that has ended a turn has thought about what it was told of.
func (s *Supervisor) offersOn(e ledger.Event) {
	switch e.What {
	case "member.activity":
		m := s.find(e.ID)
		if m == nil || e.After != string(team.Idle) {
			return
		}
		m.offered, m.idleAt = nil, e.At
	case "task.created", "task.imported", "task.unblocked", "task.released", "task.retrying", "task.retried", "task.sent_back",
		"task.assigned", "autoclaim.set", "member.role", "member.mode", quota.EventResumed, quota.EventBudgetChanged:
	default:
		return
	}
	s.offerSoon()
}

// takesOffers reports whether a member is to be told of tasks now.
func (m *member) takesOffers() bool {
	r := m.row
	switch {
	case team.KindOf(r.Spec.Agent).Worker || r.Activity != team.Idle || r.Observed != team.Running || paused(r),
		r.Desired != team.WantRunning || m.stop != nil || m.step != "",
		r.Role == team.RoleReviewer || r.Role == team.RoleObserver,
		r.Spec.Mode == team.ModePlan || r.Spec.Mode == team.ModeDelegate:
		return false
	}
	return true
}

// failedSince is when an error ended the last turn of an idle member; zero if none did.
func (m *member) failedSince() time.Time {
	if m.row.Activity != team.Idle || m.row.TurnError == "" {
		return time.Time{}
	}
	return time.UnixMilli(max(m.row.ActivityAt, m.idleAt))
}

// offerTasks tells idle members of what is ready.
type offerTasks struct{}

func (offerTasks) apply(s *Supervisor) {
	delete(s.timers, "offers")
	if s.offering {
		s.offerSoon()
		return
	}
	var in ledger.OfferIn
	var who []*member
	later := s.policy.OfferAgain
	for _, m := range s.members {
		if m.offered != nil && time.Since(m.offered.at) < s.policy.OfferAgain {
			in.Taken = append(in.Taken, m.offered.task)
		} else if m.takesOffers() {
			// An offer at once would begin the next failing turn, and bury the notice of the first.
			if wait := s.policy.OfferAgain - time.Since(m.failedSince()); wait > 0 {
				later = min(later, wait)
				s.after("offers after a failure", later, offersDue{})
			} else {
				who = append(who, m)
			}
		}
	}
	if len(who) == 0 {
		return
	}
	slices.SortFunc(who, func(a, b *member) int { // who has waited longest comes first
		return cmp.Or(cmp.Compare(a.row.ActivityAt, b.row.ActivityAt), cmp.Compare(a.row.Name, b.row.Name))
	})
	rows := make([]ledger.Member, len(who))
	for i, m := range who {
		rows[i] = m.row
	}
	s.offering = true
	began := time.Now().UnixMilli()
	s.step(func(ctx context.Context) message {
		out, next, err := s.offer(ctx, rows, in)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("offer tasks", "err", err)
		}
		return offersMade{out, next, began}
	})
}

// offer tells those that nothing is on its way to and nothing is in the way of. next is
// when a task is due that waits for its time, in Unix milliseconds.
func (s *Supervisor) offer(ctx context.Context, rows []ledger.Member, in ledger.OfferIn) (out []ledger.Offer, next int64, err error) {
	all := make([]string, len(rows))
	for i, r := range rows {
		all[i] = r.SessionKey
	}
	some, next, err := s.cfg.Ledger.Offerable(ctx, all)
	if err != nil || !some {
		return nil, next, err
	}
	q, err := quota.Read(ctx, s.cfg.Ledger)
	if err != nil {
		return nil, next, err
	}
	for _, r := range rows {
		if !team.KindOf(r.Spec.Agent).NoModel && q.Blocks(r, time.Now()) != nil {
			continue
		}
		waiting, err := s.cfg.Ledger.Waiting(ctx, r.SessionKey)
		if err != nil {
			return nil, next, err
		}
		if !slices.ContainsFunc(waiting, s.wakes) {
			in.Sessions = append(in.Sessions, r.SessionKey)
		}
	}
	if len(in.Sessions) == 0 {
		return nil, next, nil
	}
	out, err = s.cfg.Ledger.OfferTasks(ctx, in)
	for _, o := range out {
		s.mailer().Deliver(ctx, o.Deliveries)
	}
	return out, next, err
}

// wakes reports whether mail begins a turn of its recipient in a while, or has just
// been handed over.
func (s *Supervisor) wakes(o ledger.Outgoing) bool {
	return o.Delivery.State != team.Injected || time.Since(time.UnixMilli(o.Delivery.At)) < s.policy.OfferAgain
}

// offersMade is the end of offerTasks.
type offersMade struct {
	out         []ledger.Offer
	next, began int64 // Unix milliseconds
}

func (o offersMade) apply(s *Supervisor) {
	s.offering = false
	for _, one := range o.out {
		m := s.members[one.Session]
		if m == nil {
			continue
		}
		s.log.Info("told of a ready task", "member", m.row.Name, "task", one.Task)
		if m.idleAt <= o.began { // or it has had its turn already
			m.offered = &offering{one.Task, time.Now()}
		}
	}
	again := time.Duration(0)
	if len(o.out) > 0 {
		again = s.policy.OfferAgain
	}
	if o.next > 0 {
		if due := max(time.Until(time.UnixMilli(o.next)), 0) + time.Millisecond; again == 0 || due < again {
			again = due
		}
	}
	if again > 0 && s.timers["offers"] == nil {
		s.after("offers again", again, offersDue{})
	}
}

// offersDue looks again: somebody has not answered, or a task's time has come.
type offersDue struct{}

func (offersDue) apply(s *Supervisor) {
	delete(s.timers, "offers again")
	s.offerSoon()
}
