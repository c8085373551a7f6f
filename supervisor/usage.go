package supervisor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// usageRest is the least time between two writes of what was used: some agents
// count after every request. What crosses a bound of a budget is written at once.
const usageRest = 2 * time.Second

// usage is what members have used, as far as this supervisor knows.
type usage struct {
	spent         map[string]quota.Spent // by session key; nil before the first look
	conversations map[string]string      // the last that each member was seen in, by session key
}

// counted takes what an observation says of what was used.
func (s *Supervisor) counted(m *member, o team.Observation) {
	if o.Conversation != "" {
		s.usage.conversations[m.row.SessionKey] = o.Conversation
	}
	if o.Usage != nil {
		s.used(m, *o.Usage)
	}
}

// used takes what an agent has counted in its conversation.
func (s *Supervisor) used(m *member, u team.Usage) {
	q := s.readQuota()
	if q == nil {
		return
	}
	key := m.row.SessionKey
	conversation := s.usage.conversations[key]
	before := s.usage.spent[key]
	if old, ok := before.Conversations[conversation]; ok && old == u {
		return
	}
	now := quota.Spent{Name: m.row.Name, Agent: m.row.Spec.Agent, Conversations: maps.Clone(before.Conversations)}
	if now.Conversations == nil {
		now.Conversations = map[string]team.Usage{}
	}
	now.Conversations[conversation] = u
	q.Spent = s.usage.spent
	all := q.Team()
	s.usage.spent[key] = now
	own := q.Budgets.Members[m.row.Name]
	crossed := s.crossed(m.row.Name, own, before.Total(), now.Total(), []*member{m})
	everybody := slices.Collect(maps.Values(s.members))
	if s.crossed("", q.Budgets.Team, all, q.Team(), everybody) || crossed {
		s.writeUsage()
	} else if s.timers["usage"] == nil {
		s.after("usage", usageRest, flushUsage{})
	}
}

// readQuota reads the budgets, and once what was used before this supervisor.
func (s *Supervisor) readQuota() *quota.Quota {
	ctx, cancel := s.write()
	defer cancel()
	q, err := quota.Read(ctx, s.cfg.Ledger)
	if err != nil {
		s.log.Warn("read budgets", "err", err)
		return nil
	}
	if s.usage.spent == nil {
		s.usage.spent = q.Spent
	}
	if s.usage.spent == nil {
		s.usage.spent = map[string]quota.Spent{}
	}
	return &q
}

// flushUsage writes what has come together.
type flushUsage struct{}

func (flushUsage) apply(s *Supervisor) { s.writeUsage() }

func (s *Supervisor) writeUsage() {
	s.after("usage", 0, nil)
	ctx, cancel := s.write()
	defer cancel()
	if err := s.cfg.Ledger.Set(ctx, quota.SettingUsage, s.usage.spent); err != nil {
		s.log.Warn("write what was used", "err", err)
		s.after("usage", usageRest, flushUsage{})
	}
}

// lastUsage writes what is not written yet, at the end.
func (s *Supervisor) lastUsage() {
	if s.timers["usage"] != nil {
		s.writeUsage()
	}
}

// holdBack keeps mail from a member that must get no prompts now, and says why. What
// asks it to stop goes through.
func (s *Supervisor) holdBack(ctx context.Context, row ledger.Member, waiting []ledger.Outgoing) (held bool, err error) {
	if team.KindOf(row.Spec.Agent).NoModel || slices.ContainsFunc(waiting, func(o ledger.Outgoing) bool { return o.Message.Kind == team.KindShutdownRequest }) {
		return false, nil
	}
	q, err := quota.Read(ctx, s.cfg.Ledger)
	if err != nil {
		return false, err
	}
	no := q.Blocks(row, time.Now())
	if no == nil {
		return false, nil
	}
	var marks []ledger.DeliveryMark
	for _, o := range waiting {
		if d := o.Delivery; d.State == team.Mailed || d.State == team.Held && d.Reason != no.Error() {
			marks = append(marks, ledger.DeliveryMark{MessageID: d.MessageID, Recipient: row.Name, State: team.Held, Reason: no.Error()})
		}
	}
	return true, s.noteDelivered(ctx, row, marks, nil)
}

// crossed tells of a bound that was crossed, and at the end of a budget breaks off
// the turns of those it holds for. who is "" for the team.
func (s *Supervisor) crossed(who string, b team.Budget, before, after team.Usage, ms []*member) bool {
	was, is := b.Share(before), b.Share(after)
	what := ""
	switch {
	case was < 1 && is >= 1:
		what = team.EventUsageBudgetUsedUp
	case was < quota.WarnAt && is >= quota.WarnAt:
		what = team.EventUsageBudgetWarned
	default:
		return false
	}
	s.log.Warn("budget", "member", who, "used", shown(is), "event", what)
	ctx, cancel := s.write()
	defer cancel()
	if _, err := quota.Tell(ctx, s.cfg.Ledger, who, b, after); err != nil {
		s.log.Warn("tell of a budget", "member", who, "err", err)
	}
	if what != team.EventUsageBudgetUsedUp {
		return true
	}
	for _, m := range ms {
		if team.KindOf(m.row.Spec.Agent).NoModel {
			continue
		}
		if m.line == nil {
			if !m.plan.Channel && m.at != nil && m.row.Activity == team.Working { // it takes a signal
				s.breakTurn(m)
			}
			continue
		}
		l, name := m.line, m.row.Name
		s.step(func(ctx context.Context) message {
			ctx, cancel := context.WithTimeout(ctx, deliverWithin)
			defer cancel()
			l.calls.Lock()
			defer l.calls.Unlock()
			if err := l.Interrupt(ctx); err != nil {
				s.log.Warn("interrupt: the budget is used up", "member", name, "err", err)
			}
			return nil
		})
	}
	return true
}

// breakTurn ends the turn of an agent that has no channel.
func (s *Supervisor) breakTurn(m *member) {
	at, name := m.at, m.row.Name
	s.step(func(ctx context.Context) message {
		if err := at.Interrupt(ctx); err != nil {
			s.log.Warn("interrupt: the budget is used up", "member", name, "err", err)
		}
		return nil
	})
}

// shown is a share as people read it.
func shown(share float64) string { return fmt.Sprintf("%d%%", int(share*100)) }
