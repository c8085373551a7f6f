package delivery

import (
	"context"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// Observed takes what was seen of a generation.
func (d *Delivery) Observed(session, generation string, o team.Observation) {
	m := d.at(session, generation)
	if m == nil {
		return
	}
	if !m.row.Channel { // what it does it says itself
		d.usage.Counted(m.row, o)
		return
	}
	was := m.row.Activity
	if o.At.UnixMilli() < m.row.StartedAt { // of a conversation that it has taken up: that turn was another process's
		o.Failed = ""
	}
	o.Failed = inOneLine(o.Failed)
	m.seen.Take(o)
	d.turnGoes(m, o)
	d.showState(m)
	d.turnBroken(m)
	if o.Activity == team.Limited {
		d.breakOffLate(m)
	}
	if len(o.Receipts) > 0 {
		d.receipts(m, o.Receipts)
	}
	if o.Ask != nil {
		d.askFor(m, *o.Ask)
	}
	if o.Settled != "" {
		d.settledElsewhere(m, o.Settled, answeredThere)
	}
	d.answerOwed(m)
	if m.row.Activity == team.Idle && was != team.Idle {
		d.core.AtRest(session)
	}
	d.usage.Counted(m.row, o)
	switch c := m.conn; {
	case c == nil:
	case c.waiting:
		d.deliver(m)
	case c.busy && m.row.Activity != was: // the hand-over may have seen what was before
		c.again = true
	}
}

// showState writes what the engine says to the member's row, where that is news.
func (d *Delivery) showState(m *recipient) {
	v := m.seen.Verdict(time.Now())
	if v.Ready && !m.row.Ready {
		d.core.Ready(m.row.SessionKey, v.Source)
		d.refresh(m)
	}
	until := int64(0)
	if !v.Until.IsZero() {
		until = v.Until.UnixMilli()
		session := m.row.SessionKey
		d.Bus.After(limitTimer(session), time.Until(v.Until)+time.Millisecond, func() { d.limitOver(session) })
	}
	// One limit may follow another before anybody has heard of the first one's end.
	limit := v.Activity == team.Limited && (!v.Since.Equal(m.limit) || until != m.row.LimitedTo)
	if v.Activity != m.row.Activity || v.For != m.row.WaitsFor || until != m.row.LimitedTo || v.Failed != m.row.TurnError ||
		saysNoHooks(m.row, v) != state.HasNoHooks(m.row.Member) {
		d.writeState(m, v, until)
	}
	if limit {
		if d.usage.Limited(m.row, v) {
			m.limit = v.Since
		}
	}
}

// writeState writes to the member's row what it does, in Unix milliseconds how long it
// is limited, and why.
func (d *Delivery) writeState(m *recipient, v team.Verdict, until int64) {
	why := ""
	if v.Activity == team.Waiting || v.Activity == team.Limited {
		why = string(v.Activity)
		if v.For != "" {
			why += " for " + string(v.For)
		}
		if len(v.Evidence) > 0 {
			why += ": " + strings.Join(v.Evidence, " / ")
		}
	}
	if saysNoHooks(m.row, v) {
		why = state.NoHooksReason
	}
	if m.row.Paused { // what was on its way when it was frozen
		why = state.PausedReason
	}
	p := ledger.MemberPatch{Activity: &v.Activity, WaitsFor: &v.For, LimitedTo: &until, TurnError: &v.Failed, Reason: &why}
	if v.Activity == team.Idle && (m.row.Activity != team.Idle || v.Failed != "" && v.Failed != m.row.TurnError) && m.row.Channel {
		p.Notice = d.turnOver(m, v.Failed)
	}
	d.patch(m, p)
}

func limitTimer(session string) string { return "limited:" + session }

// limitOver writes what a member does once its limit is over.
func (d *Delivery) limitOver(session string) {
	if m := d.of(session); m != nil && m.row.Observed == team.Running {
		d.showState(m)
	}
}

// receipts writes what a channel has learned of mail that was handed over before.
func (d *Delivery) receipts(m *recipient, list []team.Receipt) {
	row := m.row.Member
	var marks []ledger.DeliveryMark
	var got []string
	for _, r := range list {
		marks = append(marks, ledger.DeliveryMark{MessageID: r.ID, Recipient: row.Name, State: r.State, Evidence: r.Evidence})
		got = append(got, r.ID)
	}
	d.beside("note receipts", func(ctx context.Context) {
		if err := d.noteDelivered(ctx, row, marks, got); err != nil && ctx.Err() == nil {
			d.team.Log.Warn("note receipts", "member", row.Name, "err", err)
		}
	})
}

// saysNoHooks reports whether a member's row is to say that its hooks do not run.
func saysNoHooks(m loop.Member, v team.Verdict) bool {
	return v.NoHooks && v.Activity != team.Waiting && v.Activity != team.Limited && !m.Paused
}

// Report is what was seen of a member, and what follows from it.
func (d *Delivery) Report(session string) team.Report {
	if w := d.ways[session]; w != nil {
		return w.seen.Report(time.Now())
	}
	return (&state.Engine{}).Report(time.Now())
}
