package delivery

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// Observed handles an observation of a generation.
func (d *Delivery) Observed(session, generation string, o team.Observation) {
	m := d.at(session, generation)
	if m == nil {
		return
	}
	if !m.row.Channel { // it reports its own activity
		d.usage.Counted(m.row, o)
		return
	}
	was := m.row.Activity
	if now := time.Now(); o.At.Sub(now) > state.Settle { // from before the clock was set back
		o.At = now
	}
	if o.At.UnixMilli() < m.row.StartedAt { // from a resumed conversation: that turn belonged to another process
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
	case c.busy && m.row.Activity != was: // the hand-over may have used an older state
		c.again = true
	}
}

// showState writes the engine's verdict to the member's row if it has changed.
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
	// One limit may follow another before the end of the first was noticed.
	limit := v.Activity == team.Limited && (!v.Since.Equal(m.limit) || until != m.row.LimitedTo)
	if v.Activity != m.row.Activity || v.For != m.row.WaitsFor || until != m.row.LimitedTo || v.Failed != m.row.TurnError ||
		saysNoHooks(m.row, v) != state.HasNoHooks(m.row.Member) || m.silence(v) {
		d.writeState(m, v, until)
	}
	if limit {
		if d.usage.Limited(m.row, v) {
			m.limit = v.Since
		}
	}
}

// writeState writes a member's activity to its row, with the end of a limit in Unix milliseconds,
// and the reason.
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
	if s := m.silent(v); s != "" {
		why = s
	}
	if saysNoHooks(m.row, v) {
		why = team.WhyNoHooks
	}
	if m.row.Paused { // an observation from just before the pause
		why = team.WhyPaused
	}
	p := ledger.MemberPatch{Activity: &v.Activity, WaitsFor: &v.For, LimitedTo: &until, TurnError: &v.Failed, Reason: &why}
	if v.Activity == team.Idle && (m.row.Activity != team.Idle || v.Failed != "" && v.Failed != m.row.TurnError) && m.row.Channel {
		p.Notice = d.turnOver(m, v.Failed)
	}
	d.patch(m, p)
}

// dialogAnswered notes that a request of a member was answered, and writes its activity once a dialog that is
// still on the screen was not closed by that. The ledger has it working since the answer.
func (d *Delivery) dialogAnswered(e ledger.Event) {
	var asked struct {
		Kind ledger.ApprovalKind `json:"kind"`
		Name string              `json:"name"`
	}
	if json.Unmarshal(e.Data, &asked) != nil || asked.Kind != ledger.ApprovePermission && asked.Kind != ledger.ApprovePlan {
		return
	}
	row, ok := d.Bus.Find(asked.Name)
	if !ok || !row.Channel {
		return
	}
	session := row.SessionKey
	m := d.of(session)
	if m == nil {
		return
	}
	until := m.seen.Answered(time.UnixMilli(e.At))
	d.Bus.After("answered:"+session, time.Until(until)+time.Millisecond, func() {
		if m := d.of(session); m != nil && m.row.Observed == team.Running {
			d.showState(m)
		}
	})
}

func limitTimer(session string) string { return "limited:" + session }

// limitOver writes a member's activity once its limit is over.
func (d *Delivery) limitOver(session string) {
	if m := d.of(session); m != nil && m.row.Observed == team.Running {
		d.showState(m)
	}
}

// receipts records what a channel has learned about earlier deliveries.
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

// saysNoHooks reports whether a member's row must say that its hooks do not run.
func saysNoHooks(m loop.Member, v team.Verdict) bool {
	return v.NoHooks && v.Activity != team.Waiting && v.Activity != team.Limited && !m.Paused
}

// silent returns why a member's program reports no state, as its row says it; "" if it does, or if
// its screen shows one.
func (m *recipient) silent(v team.Verdict) string {
	if m.shut != "" && v.Activity == team.ActivityUnknown {
		return team.WhySilent + m.shut
	}
	return state.Silent(v)
}

// silence reports whether a member's row lacks the reason why its program reports no state, or has
// one that is over. Any other reason stays, for example that the member is not ready.
func (m *recipient) silence(v team.Verdict) bool {
	return (m.row.Reason == "" || state.HasSilent(m.row.Member)) && m.row.Reason != m.silent(v)
}

// Report returns the observations of a member, and the verdict.
func (d *Delivery) Report(session string) team.Report {
	if w := d.ways[session]; w != nil {
		r := w.seen.Report(time.Now())
		if w.shut != "" {
			r.Evidence = append(slices.Clone(r.Evidence), w.shut)
		}
		return r
	}
	return (&state.Engine{}).Report(time.Now())
}
