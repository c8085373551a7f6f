package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// limited opens the breaker of an agent's provider: one of its members has run into
// a limit.
func (s *Supervisor) limited(m *member, v team.Verdict) {
	ctx, cancel := s.write()
	defer cancel()
	agent := m.row.Spec.Agent
	all, opened, err := quota.Note(ctx, s.cfg.Ledger, agent, m.row.Name, v.Since, v.Until, v.Evidence)
	if err != nil {
		s.log.Warn("note a usage limit", "agent", agent, "err", err)
		return
	}
	m.limit = v.Since
	if opened {
		s.log.Warn("usage limit", "agent", agent, "member", m.row.Name, "until", v.Until)
	}
	s.watchLimits(all)
}

// watchLimits looks again when the next limit is over.
func (s *Supervisor) watchLimits(all map[string]team.ProviderLimit) {
	var next time.Duration
	for _, l := range all {
		if l.Until == 0 {
			continue
		}
		if d := max(time.Until(time.UnixMilli(l.Until)), time.Millisecond); next == 0 || d < next {
			next = d
		}
	}
	s.after("limits", next, limitsOver{})
}

// limitsOver closes the breakers whose time has come, where the team goes on by itself.
type limitsOver struct{}

func (limitsOver) apply(s *Supervisor) {
	s.after("limits", 0, nil)
	q := s.readQuota()
	if q == nil || !q.Budgets.Resume {
		return
	}
	due := func(l team.ProviderLimit) bool { return l.Until != 0 && time.Now().UnixMilli() >= l.Until }
	for agent, l := range maps.Clone(q.Limited) {
		if !due(l) {
			continue
		}
		ctx, cancel := s.write()
		err := quota.End(ctx, s.cfg.Ledger, agent, due)
		cancel()
		if err != nil && !team.IsCode(err, team.CodeNotFound) { // a person was faster
			s.log.Warn("close a breaker", "agent", agent, "err", err)
			s.after("limits", usageRest, limitsOver{})
			return
		}
		delete(q.Limited, agent)
	}
	s.watchLimits(q.Limited)
}

// resumed goes on with what was held, and tells those whose turn the limit had
// broken off to go on.
func (s *Supervisor) resumed(e ledger.Event) {
	var l team.ProviderLimit
	_ = json.Unmarshal(e.Data, &l) // a changed budget has none
	q := s.readQuota()
	for _, m := range s.members {
		if e.What == team.EventUsageResumed && m.row.Spec.Agent == e.ID {
			if q != nil {
				m.seen.Ended = q.Ended(e.ID)
				if m.plan.Channel && m.row.Observed == team.Running {
					s.showState(m)
				}
			}
			s.goOn(m, l)
		}
		switch {
		case m.row.Observed == team.Backoff:
			s.after("backoff:"+m.row.SessionKey, time.Millisecond, retry{m.row.SessionKey})
		case m.line != nil:
			s.deliver(m)
		}
	}
}

// goOnLeft does what a supervisor that was killed had still to do for limits that were
// ended in this run: nobody reads their events again.
func (s *Supervisor) goOnLeft() {
	q := s.readQuota()
	if q == nil || len(q.Over) == 0 {
		return
	}
	ctx, cancel := s.write()
	defer cancel()
	run, err := s.cfg.Ledger.CurrentRun(ctx)
	if err != nil {
		s.log.Warn("read the run", "err", err)
		return
	}
	for _, m := range s.members {
		l, ok := q.Over[m.row.Spec.Agent]
		if ok && max(run.StartedAt, m.row.StartedAt) <= l.Ended {
			s.goOn(m, l)
		}
	}
}

// goOn posts the word to go on to a member whose turn the limit has broken off. Its key
// is that of the limit: who comes after a kill does not post it twice.
func (s *Supervisor) goOn(m *member, l team.ProviderLimit) {
	row, line := m.row, m.line
	if !slices.Contains(l.Members, row.Name) || row.Observed != team.Running {
		return
	}
	s.step(func(ctx context.Context) message {
		if line != nil {
			s.breakOff(ctx, row.Name, line)
		}
		_, _, err := s.mailer().Post(ctx, ledger.NewMessage{
			IdemKey: fmt.Sprintf("%s-%s-%d-%s", team.EventUsageResumed, row.Spec.Agent, l.Since, row.SessionKey),
			Kind:    team.KindInfo, From: team.LeadName, To: row.Name, Summary: "the usage limit is over",
			Text: "The usage limit that stopped you is over. Look at what is done, and go on.",
		})
		if err != nil && ctx.Err() == nil {
			s.log.Warn("tell of the end of a limit", "member", row.Name, "err", err)
		}
		return nil
	})
}

// breakOff ends a turn that would go on by itself at the end of a limit that is over.
func (s *Supervisor) breakOff(ctx context.Context, name string, l *line) {
	r, ok := l.Channel.(Retrier)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, deliverWithin)
	defer cancel()
	l.calls.Lock()
	defer l.calls.Unlock()
	if !r.Retries() {
		return
	}
	if err := l.Interrupt(ctx); err != nil {
		s.log.Warn("interrupt: its limit is over", "member", name, "err", err)
	}
}

// breakOffLate is for a channel that learns, after the limit was ended, that its agent
// sits in such a turn: it was not open then, or its agent had not said so yet.
func (s *Supervisor) breakOffLate(m *member) {
	row, line := m.row, m.line
	if line == nil || !m.seen.InEndedLimit() {
		return
	}
	s.step(func(ctx context.Context) message {
		s.breakOff(ctx, row.Name, line)
		return nil
	})
}
