package supervisor

import (
	"context"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/holder"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// A generation that may be alive and cannot be adopted is in doubt: its state is unknown, nothing
// of its name is started, and adoption is retried, first after a second and then at growing
// intervals, until the state is known.

// doubt marks a member as in doubt, arms the next attempt, and answers the waiting requests.
func (s *Supervisor) doubt(m *member, why error) {
	m.doubts++
	m.unsure = team.Errorf(team.CodeUnavailable, "it is not known whether %s lives: %w", m.row.Name, why).
		WithReason(team.ReasonStateUnknown).WithHint("teamctl doctor --team " + s.cfg.Layout.Key + " says more; teamctl kill " + m.row.Name + " ends what can be found of it")
	s.log.Warn("cannot adopt", "member", m.row.Name, "attempt", m.doubts, "err", why)
	unknown, reason := team.ActivityUnknown, team.WhyUnknown+why.Error()
	_ = s.patch(m, ledger.MemberPatch{Activity: &unknown, Reason: &reason})
	s.after("adopt:"+m.row.SessionKey, s.policy.Backoff(m.doubts), adoptAgain{m.row.SessionKey})
	s.answerUp(m, m.unsure)
	if m.stop != nil {
		s.answerStop(m, team.StopFailed, m.unsure.Error())
	}
}

// endDoubt clears what doubt has written.
func (s *Supervisor) endDoubt(m *member) {
	m.unsure, m.doubts = nil, 0
	s.after("adopt:"+m.row.SessionKey, 0, nil)
	if state.Unknown(m.row) {
		_ = s.patch(m, ledger.MemberPatch{Reason: new(string)})
	}
}

// adoptAgain retries the adoption of a member.
type adoptAgain struct{ session string }

func (a adoptAgain) apply(s *Supervisor) {
	m := s.members[a.session]
	if m == nil || m.unsure == nil || m.step != stepNone {
		return
	}
	m.step = stepAdopting
	row := m.row
	s.step(func(ctx context.Context) message {
		ctx, cancel := context.WithTimeout(ctx, s.policy.Start)
		defer cancel()
		return adopted{row.SessionKey, s.adopt(ctx, row)}
	})
}

// adopted is the result of an adoption step.
type adopted struct {
	session string
	adoption
}

func (a adopted) apply(s *Supervisor) {
	m := s.members[a.session]
	m.step = stepNone
	if a.unsure != nil {
		if m.stop != nil && m.stop.in.Force {
			s.endUnknown(m)
			return
		}
		s.doubt(m, a.unsure)
		return
	}
	s.endDoubt(m)
	s.settleAdopted(m, a.adoption)
	switch {
	case m.stop == nil:
		s.reconcile(m)
	case m.at != nil && m.row.Observed.Alive():
		s.proceedStop(m)
	default:
		s.conclude(m, conclusion{a.session, finalOf(m, team.Completed), m.row.Reason, team.StopAlready})
	}
}

// endUnknown ends, by force, a generation that cannot be adopted: all of its processes that are
// found without its bundle.
func (s *Supervisor) endUnknown(m *member) {
	if !s.moveStop(m, team.StopIsEnding) {
		return
	}
	m.stop.outcome = team.StopForced
	s.after("adopt:"+m.row.SessionKey, 0, nil)
	m.step = stepEnding
	row := m.row
	s.step(func(ctx context.Context) message {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.policy.Grace+s.policy.Start)
		defer cancel()
		e, err := holder.EndUnread(ctx, nil, s.cfg.Layout.Bundle(row.Name), s.cfg.Layout.Key, row.Name, row.Generation, s.policy.Grace)
		return endedUnknown{row.SessionKey, row.Generation, e, err}
	})
}

// endedUnknown is the result of such a step.
type endedUnknown struct {
	session, generation string
	exit                backends.Exit
	err                 error
}

func (d endedUnknown) apply(s *Supervisor) {
	m := s.members[d.session]
	m.step = stepNone
	if d.err != nil {
		s.doubt(m, d.err)
		return
	}
	s.endDoubt(m)
	exited{d.session, d.generation, d.exit}.apply(s)
}

// BundleProblems returns the unreadable files of a member's bundle, with the reasons: another
// supervisor could not adopt the member.
func BundleProblems(b team.Bundle) []error { return bundle.Problems(b) }
