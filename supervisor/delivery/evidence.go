package delivery

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A channel that can be asked gives its receipts by events. One that was missed, or a
// message that its program has dropped without a word, would stay injected for ever: what
// stays so for longer than its way takes is asked about, and then ever more seldom.

// askedAbout is how often a message was asked about, when last, and whether it was then
// still pending.
type askedAbout struct {
	at      time.Time
	times   int
	pending bool
}

// evidenceDoublings bounds how seldom a message is asked about: every 16 minutes, where the
// first time is after 30 s.
const evidenceDoublings = 5

// settles reports whether the channel finds out what became of what it has handed over.
func (c *conn) settles() bool {
	s, ok := c.Channel.(Settler)
	return ok && s.Settles()
}

// askAboutIn is how long a message that was handed over is left before it is asked about.
// It is for hand-overs.
func (d *Delivery) askAboutIn(c *conn, del ledger.Delivery, now time.Time) time.Duration {
	asked := c.askedAbout[del.MessageID]
	since := time.UnixMilli(del.At)
	if asked.at.After(since) {
		since = asked.at
	}
	return d.policy.Evidence<<min(asked.times, evidenceDoublings) - now.Sub(since)
}

// askAbout returns the messages among out that are to be asked about now, and when the next
// one is; 0 for never. all has those that were handed over before the channel was opened
// asked about too.
func (d *Delivery) askAbout(c *conn, out []ledger.Outgoing, all bool, now time.Time) (ids map[string]bool, next time.Duration) {
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
		left := d.askAboutIn(c, o.Delivery, now)
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

// notePending notes which of the messages that were asked about are still pending.
func (c *conn) notePending(outcomes []team.Outcome) {
	for _, o := range outcomes {
		if a, ok := c.askedAbout[o.ID]; ok && a.pending != o.Pending {
			a.pending = o.Pending
			c.askedAbout[o.ID] = a
		}
	}
}

// unknownAfter is how long a message that was handed over is left before it is unknown.
// A channel that can be asked has been asked twice by then. What is pending may be so for as
// long as a command of the agent runs, or its model thinks.
func (d *Delivery) unknownAfter(c *conn, id string) time.Duration {
	if c.settles() && !c.askedAbout[id].pending {
		return 4 * d.policy.Evidence
	}
	return d.policy.Doubt
}

// lookAgain is how long after a hand-over its evidence is looked for.
func (d *Delivery) lookAgain(c *conn) time.Duration {
	if c.settles() {
		return d.policy.Evidence
	}
	return d.policy.Doubt
}

// giveUpHope notes as unknown what was handed over for longer than its way takes and is
// not shown to have arrived. It returns when the next one is due; 0 for never.
func (d *Delivery) giveUpHope(ctx context.Context, c *conn, row ledger.Member, out []ledger.Outgoing, now time.Time) (next time.Duration, err error) {
	var marks []ledger.DeliveryMark
	for _, o := range out {
		if o.Delivery.State != team.Injected {
			continue
		}
		left := d.unknownAfter(c, o.Message.ID) - now.Sub(time.UnixMilli(o.Delivery.At))
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

// sooner is the shorter of two waits, of which 0 is for ever.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// evidenceTimer asks about what is still injected.
func evidenceTimer(session string) string { return "evidence:" + session }
