package supervisor

import (
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// awaitReady waits for the evidence that a member takes messages: its own report over the notify
// socket if it can send one, else output that has settled. If that does not come in time, the lead
// is notified with the reason; nothing is killed, since the agent may be waiting for a person.
func (s *Supervisor) awaitReady(m *member) {
	session, gen := m.row.SessionKey, m.row.Generation
	if m.plan.ReportsReady || m.plan.Channel && s.cfg.Courier != nil {
		s.after("ready:"+session, s.policy.Start, notReady{session, gen})
		if m.plan.ReportsReady {
			s.watchWord(m)
		}
		return
	}
	if err := s.output.Wait(s.cfg.Layout.Bundle(m.row.Name), session, gen, s.policy.Silent); err != nil {
		s.log.Warn("watch output", "member", m.row.Name, "err", err)
		s.markReady(m, "up")
	}
}

// forgetReady stops waiting for a generation that has ended.
func (s *Supervisor) forgetReady(m *member) {
	s.after("ready:"+m.row.SessionKey, 0, nil)
	s.output.Stop(s.cfg.Layout.Bundle(m.row.Name))
	m.dropWord()
	s.delivery.Closed(m.row.SessionKey)
}

// markReady records readiness and its evidence.
func (s *Supervisor) markReady(m *member, evidence string) {
	s.after("ready:"+m.row.SessionKey, 0, nil)
	if m.row.Ready || m.row.Observed != team.Running {
		return
	}
	ready := true
	p := ledger.MemberPatch{Ready: &ready}
	if !state.Paused(m.row) {
		p.Reason = new(string)
	}
	if s.patch(m, p) != nil {
		s.after("ready:"+m.row.SessionKey, time.Second, readyAgain{m.row.SessionKey, m.row.Generation, evidence})
		return
	}
	m.dropWord()
	s.log.Info("ready", "member", m.row.Name, "evidence", evidence)
}

// readyAgain is a readiness that the ledger did not accept before.
type readyAgain struct{ session, generation, evidence string }

func (r readyAgain) apply(s *Supervisor) {
	if m := s.members[r.session]; m != nil && m.row.Generation == r.generation {
		s.markReady(m, r.evidence)
	}
}

// watchWord waits for the member's report in its bundle: its datagram is lost if nothing listens,
// or too early if its start is not recorded yet.
func (s *Supervisor) watchWord(m *member) {
	m.dropWord()
	b, word := s.cfg.Layout.Bundle(m.row.Name), wordSaid{m.row.SessionKey, m.row.Generation}
	unwatch, err := s.output.Watch(string(b), func(e dirwatch.Event) {
		if e.Lost || e.Poll || filepath.Base(e.Name) == filepath.Base(b.Ready()) {
			time.AfterFunc(0, func() { s.send(word) }) // the watcher must not wait for the loop
		}
	})
	if err != nil {
		s.log.Warn("watch for readiness", "member", m.row.Name, "err", err)
	} else {
		m.unwatch = unwatch
	}
	word.apply(s) // reported before the watch
}

// dropWord stops waiting for the member's report.
func (m *member) dropWord() {
	if m.unwatch != nil {
		m.unwatch()
		m.unwatch = nil
	}
}

func (s *Supervisor) dropWords() {
	for _, m := range s.members {
		m.dropWord()
	}
}

// wordSaid reports that the member's report may be in its bundle.
type wordSaid struct{ session, generation string }

func (w wordSaid) apply(s *Supervisor) {
	m := s.members[w.session]
	if m == nil || m.row.Generation != w.generation || m.row.Ready || state.Paused(m.row) {
		return
	}
	if bundle.ReadReady(s.cfg.Layout.Bundle(m.row.Name), w.generation) == nil {
		s.markReady(m, "its own word")
	}
}

// settledOutput is the rest.Watcher's report.
type settledOutput struct{ session, generation string }

func (o settledOutput) apply(s *Supervisor) {
	if m := s.members[o.session]; m != nil && m.row.Generation == o.generation && !state.Paused(m.row) {
		s.markReady(m, "settled output")
	}
}

// notReady is a missing readiness after its deadline.
type notReady struct{ session, generation string }

func (n notReady) apply(s *Supervisor) {
	m := s.members[n.session]
	if m == nil || m.row.Generation != n.generation || m.row.Ready || m.row.Observed != team.Running || state.Paused(m.row) {
		return
	}
	why := team.WhyNotReady + s.policy.Start.String() + ": it has not said so"
	if m.row.Activity == team.Waiting {
		return // that is a more precise reason
	}
	_ = s.patch(m, ledger.MemberPatch{Reason: &why})
	s.log.Warn("not ready", "member", m.row.Name, "after", s.policy.Start)
}

// openChannel opens the channel of a generation that is up.
func (s *Supervisor) openChannel(m *member) {
	if m.plan.Channel && m.at != nil && s.cfg.Courier != nil {
		s.offers.Forget(m.row.SessionKey) // drops the turns of an earlier generation
	}
	s.delivery.Open(m.row.SessionKey)
}
