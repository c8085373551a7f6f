package delivery

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A channel that can be asked reports receipts as events. A message whose event was missed, or
// that its program has dropped silently, would stay injected for ever: a message that stays
// injected for longer than usual is asked about, at growing intervals.

// askedAbout records how often a message was asked about, when last, and whether it was still
// pending then.
type askedAbout struct {
	at      time.Time
	times   int
	pending bool
}

// evidenceDoublings bounds the interval between questions about a message: 16 minutes, if the
// first question comes after 30 s.
const evidenceDoublings = 5

// settles reports whether the channel can determine the state of delivered mail.
func (c *conn) settles() bool {
	s, ok := c.Channel.(Settler)
	return ok && s.Settles()
}

// askAboutIn returns the time until a delivered message is asked about. For hand-overs.
func (d *Delivery) askAboutIn(c *conn, del ledger.Delivery, a ages, now time.Time) time.Duration {
	asked := c.askedAbout[del.MessageID]
	at := time.UnixMilli(del.At)
	since := a.since(at, now)
	if asked.at.After(at) {
		since = asked.at
	}
	return d.policy.Evidence<<min(asked.times, evidenceDoublings) - now.Sub(since)
}

// askAbout returns the messages among out to be asked about now, and the time until the next one;
// 0 for never. With all it includes those delivered before the channel was opened.
func (d *Delivery) askAbout(c *conn, out []ledger.Outgoing, all bool, a ages, now time.Time) (ids map[string]bool, next time.Duration) {
	ids = map[string]bool{}
	if !c.settles() {
		return ids, 0
	}
	still := map[string]askedAbout{}
	for _, o := range out {
		if !o.Delivery.State.HandedOver() {
			continue
		}
		id := o.Message.ID
		left := d.askAboutIn(c, o.Delivery, a, now)
		if all || left <= 0 {
			ids[id] = true
		}
		still[id] = c.askedAbout[id]
		if left <= 0 {
			still[id] = askedAbout{at: now, times: still[id].times + 1}
			left = d.policy.Evidence << min(still[id].times, evidenceDoublings)
		}
		if next == 0 || left < next {
			next = left
		}
	}
	c.askedAbout = still
	return ids, next
}

// notePending records which of the messages asked about are still pending.
func (c *conn) notePending(outcomes []team.Outcome) {
	for _, o := range outcomes {
		if a, ok := c.askedAbout[o.ID]; ok && a.pending != o.Pending {
			a.pending = o.Pending
			c.askedAbout[o.ID] = a
		}
	}
}

// unknownAfter returns the time after which a delivered message becomes unknown. A channel that
// can be asked has been asked twice by then, which giveUpHope sees to. A message may be pending as
// long as a command of the agent runs, or its model thinks.
func (d *Delivery) unknownAfter(c *conn, id string) time.Duration {
	if c.settles() && !c.askedAbout[id].pending {
		return 4 * d.policy.Evidence
	}
	return d.policy.Doubt
}

// lookAgain returns the time from a hand-over to the check of its evidence.
func (d *Delivery) lookAgain(c *conn) time.Duration {
	if c.settles() {
		return d.policy.Evidence
	}
	return d.policy.Doubt
}

// giveUpHope marks messages as unknown that were delivered for longer than usual and whose arrival
// is not shown. It returns the time until the next one is due; 0 for never.
func (d *Delivery) giveUpHope(ctx context.Context, c *conn, row ledger.Member, out []ledger.Outgoing, a ages, now time.Time) (next time.Duration, err error) {
	var marks []ledger.DeliveryMark
	for _, o := range out {
		if o.Delivery.State != team.Injected {
			continue
		}
		if c.settles() && c.askedAbout[o.Message.ID].times < 2 {
			continue // the next question comes first
		}
		left := d.unknownAfter(c, o.Message.ID) - now.Sub(a.since(time.UnixMilli(o.Delivery.At), now))
		if left > 0 {
			if next == 0 || left < next {
				next = left
			}
			continue
		}
		marks = append(marks, ledger.DeliveryMark{MessageID: o.Message.ID, Recipient: row.Name, State: team.Unknown,
			Reason: "nothing shows it since " + time.UnixMilli(o.Delivery.At).Format(time.TimeOnly), Evidence: o.Delivery.Evidence,
			IfStates: []team.DeliveryState{team.Injected}})
	}
	_, err = d.team.Ledger.MarkMany(ctx, marks)
	return next, err
}

// sooner returns the shorter of two waits, of which 0 means no limit.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// evidenceTimer is the timer for questions about injected mail.
func evidenceTimer(session string) string { return "evidence:" + session }
