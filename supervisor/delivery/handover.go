package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// Deliver delivers a member's waiting mail.
func (d *Delivery) Deliver(session string) {
	if m := d.of(session); m != nil {
		d.deliver(m)
	}
}

// deliver delivers a member's waiting mail, in one hand-over at a time.
func (d *Delivery) deliver(m *recipient) {
	c := m.conn
	if m.row.Observed != team.Running {
		return
	}
	if c == nil {
		d.holdShut(m)
		return
	}
	if c.busy {
		c.again = true
		return
	}
	c.busy = true
	row, ages := m.row.Member, d.ages
	d.Bus.Go("handed over "+row.Name, func(ctx context.Context) func() {
		left, next, err := d.handOver(ctx, c, row, ages)
		if err != nil && ctx.Err() == nil {
			d.team.Log.Warn("hand over mail", "member", row.Name, "err", err)
		}
		return func() { d.handedOver(row.SessionKey, c, left || err != nil, next) }
	})
}

// holdShut holds the mail of a member whose channel could not be opened, with the reason.
func (d *Delivery) holdShut(m *recipient) {
	why, row := m.shut, m.row.Member
	if why == "" {
		return
	}
	d.beside("hold mail", func(ctx context.Context) {
		waiting, err := d.team.Ledger.Waiting(ctx, row.SessionKey)
		if err == nil {
			err = d.hold(ctx, row, waiting, why)
		}
		if err != nil && ctx.Err() == nil {
			d.team.Log.Warn("hold mail", "member", row.Name, "err", err)
		}
	})
}

// hold marks mail that is not delivered as held for a reason. Another channel may give it meanwhile.
func (d *Delivery) hold(ctx context.Context, row ledger.Member, waiting []ledger.Outgoing, why string) error {
	var marks []ledger.DeliveryMark
	for _, o := range waiting {
		if d := o.Delivery; d.State == team.Mailed || d.State == team.Held && d.Reason != why {
			marks = append(marks, ledger.DeliveryMark{MessageID: d.MessageID, Recipient: row.Name, State: team.Held, Reason: why,
				IfStates: []team.DeliveryState{team.Mailed, team.Held}})
		}
	}
	return d.noteDelivered(ctx, row, marks, nil)
}

// handedOver is called after a hand-over; next is the time until something must be asked about, 0
// for never.
func (d *Delivery) handedOver(session string, c *conn, left bool, next time.Duration) {
	c.busy, c.waiting = false, left
	m := d.of(session)
	if m == nil || m.conn != c {
		return
	}
	d.Bus.After(evidenceTimer(session), next, func() { d.Deliver(session) })
	if c.again {
		c.again = false
		d.deliver(m)
	}
}

// handOver passes undelivered mail to a channel, and records the outcomes. left reports whether
// mail is still waiting, next is the time until a delivered message must be asked about.
func (d *Delivery) handOver(ctx context.Context, c *conn, row ledger.Member, a ages) (left bool, next time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, deliverWithin)
	defer cancel()
	out, err := d.team.Ledger.Waiting(ctx, row.SessionKey)
	if err != nil {
		return true, d.policy.Evidence, err
	}
	if left, next, err = d.handOverTo(ctx, c, row, out, a); err != nil {
		return left, next, err
	}
	due, err := d.giveUpHope(ctx, c, row, out, a, time.Now())
	return left, sooner(next, due), err
}

// handOverTo does the work of handOver for the waiting mail.
func (d *Delivery) handOverTo(ctx context.Context, c *conn, row ledger.Member, out []ledger.Outgoing, a ages) (left bool, next time.Duration, err error) {
	asking := !c.settled && c.settles()
	doubt, next := d.askAbout(c, out, asking, a, time.Now()) // delivered before, not known to be accepted
	var give []team.Mail
	var drop []ledger.DeliveryMark
	for _, o := range out {
		switch o.Delivery.State {
		case team.Mailed, team.Held:
			if ownWay(ctx, d.team.Ledger, o.Message) {
				if o.Message.At < row.StartedAt { // its requester is gone
					drop = append(drop, ledger.DeliveryMark{MessageID: o.Message.ID, Recipient: o.Delivery.Recipient, State: team.Dropped,
						Reason: "the request was of an earlier process"})
				}
				continue
			}
			give = append(give, mail.Of(ctx, d.team.Ledger, o.Message))
		case team.Posted: // its poster mails it, which wakes us
		case team.Injected, team.Unknown:
			if doubt[o.Message.ID] {
				again := mail.Of(ctx, d.team.Ledger, o.Message)
				again.Again = true
				give = append(give, again)
			}
		case team.Accepted, team.Read, team.Answered, team.Dropped:
		}
	}
	if len(drop) > 0 {
		if _, err := d.team.Ledger.MarkMany(ctx, drop); err != nil {
			return true, next, err
		}
	}
	if len(give) == 0 {
		return false, next, nil
	}
	if held, err := d.holdBack(ctx, row, out); held || err != nil {
		return true, next, err
	}
	c.calls.Lock()
	outcomes := c.Deliver(ctx, give)
	c.notePending(outcomes)
	c.settled = c.settled || asking && !slices.ContainsFunc(outcomes, func(o team.Outcome) bool { return doubt[o.ID] && o.State == team.Held })
	c.calls.Unlock()
	var marks []ledger.DeliveryMark
	var got []string
	for _, o := range outcomes {
		if doubt[o.ID] && o.State != team.Accepted { // its state is unchanged
			left = left || o.State == team.Held
			continue
		}
		switch o.State {
		case team.Injected, team.Accepted:
			got = append(got, o.ID)
			if o.State == team.Injected {
				next = sooner(next, d.lookAgain(c))
			}
		default:
			left = true
		}
		if o.State == "" {
			continue
		}
		mark := ledger.DeliveryMark{MessageID: o.ID, Recipient: row.Name, State: o.State, Reason: o.Reason, Evidence: o.Evidence}
		if o.State == team.Held { // a hook may have given it meanwhile; it must not be given again
			mark.IfStates = []team.DeliveryState{team.Mailed, team.Held}
		}
		marks = append(marks, mark)
	}
	return left, next, d.noteDelivered(ctx, row, marks, got)
}

// noteDelivered writes marks, and marks delivered mail in the mailbox file, so that the agent does
// not find it there again.
func (d *Delivery) noteDelivered(ctx context.Context, row ledger.Member, marks []ledger.DeliveryMark, got []string) error {
	// A completed hand-over is recorded even if ctx has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, err := d.team.Ledger.MarkMany(ctx, marks); err != nil {
		return err
	}
	if len(got) == 0 {
		return nil
	}
	box, err := d.team.Mailer().Box(row.Name)
	if err != nil {
		return err
	}
	_, err = box.MarkRead(ctx, got...)
	return err
}

// holdBack holds mail for a member that must get no prompts now, with the reason. A shutdown
// request is let through.
func (d *Delivery) holdBack(ctx context.Context, row ledger.Member, waiting []ledger.Outgoing) (held bool, err error) {
	if team.KindOf(row.Spec.Agent).NoModel || slices.ContainsFunc(waiting, func(o ledger.Outgoing) bool { return o.Message.Kind == team.KindShutdownRequest }) {
		return false, nil
	}
	q, err := quota.Bounds(ctx, d.team.Ledger)
	if err != nil {
		return false, err
	}
	no := q.Blocks(row, time.Now())
	if no == nil {
		return false, nil
	}
	return true, d.hold(ctx, row, waiting, no.Error())
}
