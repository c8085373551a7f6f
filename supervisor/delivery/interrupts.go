package delivery

import (
	"context"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/approval"
	"github.com/teamctl/teamctl/team"
)

// After an interrupt, the lead is notified that the turn was interrupted, and the turn's requests
// are withdrawn. The turn is over once the agent is seen idle after the interrupt.

// Interrupt returns a function that interrupts the turn of a member through its channel, to be
// called beside the loop; nil without a channel.
func (d *Delivery) Interrupt(session string) func(ctx context.Context) error {
	m := d.of(session)
	if m == nil || m.conn == nil {
		return nil
	}
	c, generation := m.conn, m.row.Generation
	m.interrupted = time.Now() // it may be seen idle before its channel has returned
	return func(ctx context.Context) error {
		c.calls.Lock()
		err := c.Interrupt(ctx)
		c.calls.Unlock()
		if err != nil { // the agent was not reached
			d.Bus.Send("not interrupted "+session, func() {
				if m := d.of(session); m != nil && m.row.Generation == generation {
					m.interrupted = time.Time{}
				}
			})
		}
		return err
	}
}

// Break interrupts the turn of a member for a reason: through its channel, or by a signal if it
// has none and is working.
func (d *Delivery) Break(session, why string) {
	m := d.of(session)
	if m == nil {
		return
	}
	c, at, name := m.conn, m.row.Screen, m.row.Name
	interrupt := func(ctx context.Context) error { return at.Interrupt(ctx) }
	switch {
	case c != nil:
		interrupt = func(ctx context.Context) error {
			c.calls.Lock()
			defer c.calls.Unlock()
			return c.Interrupt(ctx)
		}
	case m.row.Channel || at == nil || m.row.Activity != team.Working:
		return
	}
	d.beside("break a turn", func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, deliverWithin)
		defer cancel()
		if err := interrupt(ctx); err != nil {
			d.team.Log.Warn("interrupt: "+why, "member", name, "err", err)
		}
	})
}

// LimitEnded records when the last limit of a member's agent was ended.
func (d *Delivery) LimitEnded(session string, at time.Time) {
	m := d.of(session)
	if m == nil {
		return
	}
	m.seen.Ended = at
	if m.row.Channel && m.row.Observed == team.Running {
		d.showState(m)
	}
}

// BreakOff returns a function that interrupts a member's turn that would still wait for a limit
// which was ended. It is to be called beside the loop.
func (d *Delivery) BreakOff(session string) func(ctx context.Context) {
	m := d.of(session)
	if m == nil || m.conn == nil {
		return func(context.Context) {}
	}
	c, name := m.conn, m.row.Name
	return func(ctx context.Context) {
		r, ok := c.Channel.(Retrier)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, deliverWithin)
		defer cancel()
		c.calls.Lock()
		defer c.calls.Unlock()
		if !r.Retries() {
			return
		}
		if err := c.Interrupt(ctx); err != nil {
			d.team.Log.Warn("interrupt: its limit is over", "member", name, "err", err)
		}
	}
}

// breakOffLate handles a channel that learns of such a turn after the limit was ended, because it
// was not open before, or its agent had not reported the turn yet.
func (d *Delivery) breakOffLate(m *recipient) {
	if m.conn == nil || !m.seen.InEndedLimit() {
		return
	}
	d.beside("break off a turn", d.BreakOff(m.row.SessionKey))
}

// turnGoes tracks whether the observed turn is the interrupted one: a turn that begins after the
// interrupt is another.
func (d *Delivery) turnGoes(m *recipient, o team.Observation) {
	switch {
	case o.Interrupted:
		m.interrupted = o.At
	case o.Activity == team.Working && o.At.After(m.interrupted):
		m.interrupted = time.Time{}
	}
}

// turnBroken withdraws the requests of an interrupted turn once it is over.
func (d *Delivery) turnBroken(m *recipient) {
	v := m.seen.Verdict(time.Now())
	if m.interrupted.IsZero() || v.Activity != team.Idle || v.At.Before(m.interrupted) {
		return
	}
	at := m.interrupted
	m.interrupted = time.Time{}
	const why = "its turn was interrupted"
	if m.conn != nil {
		for request := range m.conn.asked {
			d.settledElsewhere(m, request, why)
		}
	}
	row := m.row
	d.beside("withdraw requests", func(ctx context.Context) {
		pending, err := d.team.Ledger.Approvals(ctx, ledger.ApprovalFilter{State: ledger.ApprovalPending, Session: row.SessionKey})
		if err != nil {
			d.team.Log.Warn("read what an interrupted turn has asked for", "member", row.Name, "err", err)
			return
		}
		for _, a := range pending {
			if strings.HasPrefix(a.RequestID, approval.HookRequest) && a.CreatedAt <= at.UnixMilli() {
				d.withdraw(ctx, row.Name, a.ID, why)
			}
		}
	})
}

// withdraw ends a request that needs no answer any more.
func (d *Delivery) withdraw(ctx context.Context, name string, id int64, why string) {
	if err := d.team.Ledger.Withdraw(ctx, id, name, why); err != nil {
		d.team.Log.Warn("withdraw a request", "member", name, "approval", id, "err", err)
	}
}
