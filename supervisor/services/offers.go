package services

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// Offers notifies idle members of ready tasks. Foreign agents do not poll the board, so each is
// offered one task, and no two members the same one, until the member has had a turn or has not
// begun one for a while. The ledger records the offers, so each is made once, whichever process is
// killed. Built-in workers claim tasks without offers.
type Offers struct {
	loop.Quiet
	team        loop.Team
	soon, again time.Duration

	looking bool                // a search for tasks is running
	told    map[string]offering // offers of this idle period, by session
	idleAt  map[string]int64    // when a member last became idle, Unix milliseconds, by session
}

// offering is a task offered to an idle member.
type offering struct {
	task string
	at   time.Time
}

// NewOffers returns the service: a task is offered after soon, and another one to the same member
// after again.
func NewOffers(t loop.Team, soon, again time.Duration) *Offers {
	return &Offers{team: t, soon: soon, again: again, told: map[string]offering{}, idleAt: map[string]int64{}}
}

// Ready searches for tasks to offer.
func (o *Offers) Ready() { o.later() }

// Forget resets a member that has a new generation.
func (o *Offers) Forget(session string) { delete(o.told, session) }

// later searches after a moment: the creator of tasks may assign them next, and workers claim
// theirs first.
func (o *Offers) later() {
	if !o.Bus.Armed("offers") {
		o.Bus.After("offers", o.soon, o.look)
	}
}

// Event handles events that may make a task ready or a member available. A member that has ended a
// turn has considered its offer.
func (o *Offers) Event(e ledger.Event) {
	switch e.What {
	case team.EventMemberActivity:
		m, ok := o.Bus.Find(e.ID)
		if !ok || e.After != string(team.Idle) {
			return
		}
		delete(o.told, m.SessionKey)
		o.idleAt[m.SessionKey] = e.At
	case team.EventTaskCreated, team.EventTaskImported, team.EventTaskUnblocked, team.EventTaskReleased, team.EventTaskRetrying, team.EventTaskRetried, team.EventTaskSentBack,
		team.EventTaskAssigned, team.EventAutoClaimSet, team.EventMemberRole, team.EventMemberMode, team.EventUsageResumed, team.EventUsageBudgetChanged:
	default:
		return
	}
	o.later()
}

// Jumped searches again if it waits for a time.
func (o *Offers) Jumped(time.Duration) {
	if o.Bus.Armed("offers again") || o.Bus.Armed("offers after a failure") {
		o.later()
	}
}

// Looked forgets members that have left.
func (o *Offers) Looked(roster bool) {
	if !roster {
		return
	}
	here := map[string]bool{}
	for _, m := range o.Bus.Members() {
		here[m.SessionKey] = true
	}
	maps.DeleteFunc(o.told, func(session string, _ offering) bool { return !here[session] })
	maps.DeleteFunc(o.idleAt, func(session string, _ int64) bool { return !here[session] })
}

// takesOffers reports whether a member may get offers now.
func takesOffers(m loop.Member) bool {
	switch {
	case team.KindOf(m.Spec.Agent).Worker || m.Activity != team.Idle || m.Observed != team.Running || m.Paused,
		m.Desired != team.WantRunning || m.Busy,
		!m.Role.TakesTasks(), !m.Spec.Mode.TakesTasks():
		return false
	}
	return true
}

// failedSince returns when an error ended the last turn of an idle member; zero if none did.
func (o *Offers) failedSince(m loop.Member) time.Time {
	if m.Activity != team.Idle || m.TurnError == "" {
		return time.Time{}
	}
	return time.UnixMilli(max(m.ActivityAt, o.idleAt[m.SessionKey]))
}

// look offers ready tasks to idle members.
func (o *Offers) look() {
	if o.looking {
		o.later()
		return
	}
	var in ledger.OfferIn
	var rows []ledger.Member
	wait := o.again
	for _, m := range o.Bus.Members() {
		if was, told := o.told[m.SessionKey]; told && time.Since(was.at) < o.again {
			in.Taken = append(in.Taken, was.task)
		} else if takesOffers(m) {
			// An immediate offer would begin the next failing turn, and bury the notice of the first
			// failure.
			if left := o.again - time.Since(o.failedSince(m)); left > 0 {
				wait = min(wait, left)
				o.Bus.After("offers after a failure", wait, o.later)
			} else {
				rows = append(rows, m.Member)
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	slices.SortFunc(rows, func(a, b ledger.Member) int { // longest idle first
		return cmp.Or(cmp.Compare(a.ActivityAt, b.ActivityAt), cmp.Compare(a.Name, b.Name))
	})
	o.looking = true
	began := time.Now().UnixMilli()
	o.Bus.Go("offer tasks", func(ctx context.Context) func() {
		out, next, err := o.offer(ctx, rows, in)
		if err != nil && ctx.Err() == nil {
			o.team.Log.Warn("offer tasks", "err", err)
		}
		return func() { o.offered(out, next, began) }
	})
}

// offer makes offers to members without pending mail or obstacles. next is when the next delayed
// task is due, in Unix milliseconds.
func (o *Offers) offer(ctx context.Context, rows []ledger.Member, in ledger.OfferIn) (out []ledger.Offer, next int64, err error) {
	all := make([]string, len(rows))
	for i, r := range rows {
		all[i] = r.SessionKey
	}
	some, next, err := o.team.Ledger.Offerable(ctx, all)
	if err != nil || !some {
		return nil, next, err
	}
	q, err := quota.Bounds(ctx, o.team.Ledger)
	if err != nil {
		return nil, next, err
	}
	for _, r := range rows {
		if !team.KindOf(r.Spec.Agent).NoModel && q.Blocks(r, time.Now()) != nil {
			continue
		}
		waiting, err := o.team.Ledger.Waiting(ctx, r.SessionKey)
		if err != nil {
			return nil, next, err
		}
		if !slices.ContainsFunc(waiting, o.wakes) {
			in.Sessions = append(in.Sessions, r.SessionKey)
		}
	}
	if len(in.Sessions) == 0 {
		return nil, next, nil
	}
	out, err = o.team.Ledger.OfferTasks(ctx, in)
	for _, one := range out {
		o.team.Mailer().Deliver(ctx, one.Deliveries)
	}
	return out, next, err
}

// wakes reports whether mail will soon begin a turn of its recipient, or was just delivered.
func (o *Offers) wakes(m ledger.Outgoing) bool {
	return !m.Delivery.State.HandedOver() || m.Delivery.State == team.Injected && time.Since(time.UnixMilli(m.Delivery.At)) < o.again
}

// offered is called after a search with the offers made, and with the time when the next task is
// due, in Unix milliseconds.
func (o *Offers) offered(out []ledger.Offer, next, began int64) {
	o.looking = false
	for _, one := range out {
		m, ok := o.Bus.Find(one.Session)
		if !ok {
			continue
		}
		o.team.Log.Info("told of a ready task", "member", m.Name, "task", one.Task)
		if o.idleAt[m.SessionKey] <= began { // otherwise it has had its turn already
			o.told[m.SessionKey] = offering{one.Task, time.Now()}
		}
	}
	again := time.Duration(0)
	if len(out) > 0 {
		again = o.again
	}
	if next > 0 {
		if due := max(time.Until(time.UnixMilli(next)), 0) + time.Millisecond; again == 0 || due < again {
			again = due
		}
	}
	if again > 0 && !o.Bus.Armed("offers") { // retry when a member has not responded, or a task becomes due
		o.Bus.After("offers again", again, o.later)
	}
}
