package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// Limited opens the breaker of an agent's provider: one of its members has reached a limit. False:
// it could not be recorded.
func (u *Usage) Limited(m loop.Member, v team.Verdict) bool {
	ctx, cancel := loop.Writing(context.Background())
	defer cancel()
	agent := m.Spec.Agent
	all, opened, err := quota.Note(ctx, u.team.Ledger, agent, m.Name, v.Since, v.Until, v.Evidence)
	if err != nil {
		u.team.Log.Warn("note a usage limit", "agent", agent, "err", err)
		return false
	}
	if opened {
		u.team.Log.Warn("usage limit", "agent", agent, "member", m.Name, "until", v.Until)
	}
	u.watchLimits(all)
	return true
}

// watchLimits arms the timer for the end of the next limit.
func (u *Usage) watchLimits(all map[string]team.ProviderLimit) {
	var next time.Duration
	for _, l := range all {
		if l.Until == 0 {
			continue
		}
		if d := max(time.Until(time.UnixMilli(l.Until)), time.Millisecond); next == 0 || d < next {
			next = d
		}
	}
	u.Bus.After("limits", next, u.limitsOver)
}

// Jumped waits again, by the time of day, for the end of a limit.
func (u *Usage) Jumped(time.Duration) {
	if u.Bus.Armed("limits") {
		u.limitsOver()
	}
}

// limitsOver closes the breakers of limits that have ended, if the team continues by itself.
func (u *Usage) limitsOver() {
	u.Bus.After("limits", 0, nil)
	q := u.limits()
	if q == nil || !q.Budgets.Resume {
		return
	}
	due := func(l team.ProviderLimit) bool { return l.Until != 0 && time.Now().UnixMilli() >= l.Until }
	for agent, l := range maps.Clone(q.Limited) {
		if !due(l) {
			continue
		}
		ctx, cancel := loop.Writing(context.Background())
		err := quota.End(ctx, u.team.Ledger, agent, due)
		cancel()
		if err != nil && !team.IsCode(err, team.CodeNotFound) { // a person was faster
			u.team.Log.Warn("close a breaker", "agent", agent, "err", err)
			u.Bus.After("limits", rest, u.limitsOver)
			return
		}
		delete(q.Limited, agent)
	}
	u.watchLimits(q.Limited)
}

// resumed continues with held work, and makes members whose turn the limit interrupted continue.
func (u *Usage) resumed(e ledger.Event) {
	var l team.ProviderLimit
	_ = json.Unmarshal(e.Data, &l) // a changed budget has none
	q := u.limits()
	for _, m := range u.Bus.Members() {
		if e.What == team.EventUsageResumed && m.Spec.Agent == e.ID {
			if q != nil {
				u.turns.LimitEnded(m.SessionKey, q.Ended(e.ID))
			}
			u.goOn(m, l)
		}
		if m.Observed == team.Backoff {
			u.retry(m.SessionKey)
		} else {
			u.turns.Deliver(m.SessionKey)
		}
	}
}

// goOnLeft completes the work of a killed supervisor for limits that were ended in this run:
// nothing reads their events again.
func (u *Usage) goOnLeft() {
	q := u.limits()
	if q == nil || len(q.Over) == 0 {
		return
	}
	ctx, cancel := loop.Writing(context.Background())
	defer cancel()
	run, err := u.team.Ledger.CurrentRun(ctx)
	if err != nil {
		u.team.Log.Warn("read the run", "err", err)
		return
	}
	for _, m := range u.Bus.Members() {
		l, ok := q.Over[m.Spec.Agent]
		if ok && max(run.StartedAt, m.StartedAt) <= l.Ended {
			u.goOn(m, l)
		}
	}
}

// goOn posts the message to continue to a member whose turn the limit interrupted. Its key is that
// of the limit, so that it is not posted again after a kill.
func (u *Usage) goOn(m loop.Member, l team.ProviderLimit) {
	if !slices.Contains(l.Members, m.Name) || m.Observed != team.Running {
		return
	}
	breakOff := u.turns.BreakOff(m.SessionKey)
	u.Bus.Go("go on after a limit", func(ctx context.Context) func() {
		breakOff(ctx)
		_, _, err := u.team.Mailer().Post(ctx, ledger.NewMessage{
			IdemKey: fmt.Sprintf("%s-%s-%d-%s", team.EventUsageResumed, m.Spec.Agent, l.Since, m.SessionKey),
			Kind:    team.KindInfo, From: team.LeadName, To: m.Name, Summary: "the usage limit is over",
			Text: "The usage limit that stopped you is over. Look at what is done, and go on.",
		})
		if err != nil && ctx.Err() == nil {
			u.team.Log.Warn("tell of the end of a limit", "member", m.Name, "err", err)
		}
		return nil
	})
}
