package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// usageRest is the least time between two writes of what was used: some agents
// count after every request. What crosses a bound of a budget is written at once.
const usageRest = 2 * time.Second

// used takes what an agent has counted in its conversation.
func (s *Supervisor) used(m *member, u team.Usage) {
	q := s.readQuota()
	if q == nil {
		return
	}
	key := m.row.SessionKey
	conversation := s.conversations[key]
	before := s.spent[key]
	if old, ok := before.Conversations[conversation]; ok && old == u {
		return
	}
	now := Spent{Name: m.row.Name, Agent: m.row.Spec.Agent, Conversations: maps.Clone(before.Conversations)}
	if now.Conversations == nil {
		now.Conversations = map[string]team.Usage{}
	}
	now.Conversations[conversation] = u
	q.Spent = s.spent
	all := q.Team()
	s.spent[key] = now
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
func (s *Supervisor) readQuota() *Quota {
	ctx, cancel := s.write()
	defer cancel()
	q, err := ReadQuota(ctx, s.cfg.Ledger)
	if err != nil {
		s.log.Warn("read budgets", "err", err)
		return nil
	}
	if s.spent == nil {
		s.spent = q.Spent
	}
	if s.spent == nil {
		s.spent = map[string]Spent{}
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
	if err := s.cfg.Ledger.Set(ctx, SettingUsage, s.spent); err != nil {
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
	if !Counts(row.Spec.Agent) || slices.ContainsFunc(waiting, func(o ledger.Outgoing) bool { return o.Message.Kind == team.KindShutdownRequest }) {
		return false, nil
	}
	q, err := ReadQuota(ctx, s.cfg.Ledger)
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
		what = EventBudgetUsedUp
	case was < warnAt && is >= warnAt:
		what = EventBudgetWarned
	default:
		return false
	}
	s.log.Warn("budget", "member", who, "used", shown(is), "event", what)
	s.event(what, who, map[string]any{"share": is, "tokens": after.Tokens(), "costUsd": after.CostUSD})
	if what != EventBudgetUsedUp {
		return true
	}
	for _, m := range ms {
		if m.line == nil || !Counts(m.row.Spec.Agent) {
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

// event writes one to the ledger.
func (s *Supervisor) event(what, id string, v any) {
	ctx, cancel := s.write()
	defer cancel()
	data, err := json.Marshal(v)
	if err == nil {
		_, err = s.cfg.Ledger.Event(ctx, ledger.Event{What: what, ID: id, Data: data})
	}
	if err != nil {
		s.log.Warn("log an event", "what", what, "err", err)
	}
}

// limited opens the breaker of an agent's provider: one of its members has run into
// a limit.
func (s *Supervisor) limited(m *member, v state.Verdict) {
	q := s.readQuota()
	if q == nil {
		return
	}
	all, agent := q.Limited, m.row.Spec.Agent
	if !v.Since.After(q.Ended(agent)) { // its words are of one that was ended
		return
	}
	l, known := all[agent]
	if all == nil {
		all = map[string]Limited{}
	}
	if !known {
		l = Limited{Since: time.Now().UnixMilli(), Evidence: v.Evidence}
	}
	if !v.Until.IsZero() {
		l.Until = max(l.Until, v.Until.UnixMilli())
	}
	if !slices.Contains(l.Members, m.row.Name) {
		l.Members = append(l.Members, m.row.Name)
	}
	all[agent] = l
	ctx, cancel := s.write()
	defer cancel()
	if err := s.cfg.Ledger.Set(ctx, SettingLimited, all); err != nil {
		s.log.Warn("note a usage limit", "agent", agent, "err", err)
		return
	}
	if !known {
		s.log.Warn("usage limit", "agent", agent, "member", m.row.Name, "until", v.Until)
		s.event(EventLimited, agent, l)
	}
	s.watchLimits(all)
}

// watchLimits looks again when the next limit is over.
func (s *Supervisor) watchLimits(all map[string]Limited) {
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
	for agent, l := range maps.Clone(q.Limited) {
		if l.Until == 0 || time.Now().UnixMilli() < l.Until {
			continue
		}
		ctx, cancel := s.write()
		err := EndLimit(ctx, s.cfg.Ledger, q, agent, time.Now())
		cancel()
		if err != nil {
			s.log.Warn("close a breaker", "agent", agent, "err", err)
			s.after("limits", usageRest, limitsOver{})
			return
		}
		s.event(EventResumed, agent, l)
	}
	s.watchLimits(q.Limited)
}

// resumed goes on with what was held, and tells those whose turn the limit had
// broken off to go on.
func (s *Supervisor) resumed(e ledger.Event) {
	var l Limited
	_ = json.Unmarshal(e.Data, &l) // a changed budget has none
	q := s.readQuota()
	for _, m := range s.members {
		if q != nil && e.What == EventResumed && m.row.Spec.Agent == e.ID {
			m.seen.Ended = q.Ended(e.ID)
			if m.plan.Channel && m.row.Observed == team.Running {
				s.showState(m)
			}
		}
		if e.What == EventResumed && m.row.Spec.Agent == e.ID && slices.Contains(l.Members, m.row.Name) && m.row.Observed == team.Running {
			s.goOn(m.row, l)
		}
		switch {
		case m.row.Observed == team.Backoff:
			s.after("backoff:"+m.row.SessionKey, time.Millisecond, retry{m.row.SessionKey})
		case m.line != nil:
			s.deliver(m)
		}
	}
}

// goOn posts the word to go on. Its key is that of the limit: who comes after a kill
// does not post it twice.
func (s *Supervisor) goOn(row ledger.Member, l Limited) {
	s.step(func(ctx context.Context) message {
		_, _, err := (Mailer{s.cfg.Layout, s.cfg.Ledger}).Post(ctx, ledger.NewMessage{
			IdemKey: fmt.Sprintf("%s-%s-%d-%s", EventResumed, row.Spec.Agent, l.Since, row.SessionKey),
			Kind:    team.KindInfo, From: team.LeadName, To: row.Name, Summary: "the usage limit is over",
			Text: "The usage limit that stopped you is over. Look at what is done, and go on.",
		})
		if err != nil && ctx.Err() == nil {
			s.log.Warn("tell of the end of a limit", "member", row.Name, "err", err)
		}
		return nil
	})
}
