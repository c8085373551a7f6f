package services

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
)

// Expire ends an approval request that was not answered by its deadline, and notifies the
// requester in the lead's name. It leaves a request alone that has time left or was answered.
func Expire(ctx context.Context, m mail.Mailer, a ledger.Approval) error {
	if a.State != ledger.ApprovalPending || a.Deadline == 0 || a.Deadline > time.Now().UnixMilli() {
		return nil
	}
	const why = "nobody answered in time"
	n := &ledger.NewMessage{From: team.LeadName, RequestID: a.RequestID, Summary: string(a.Kind) + " expired",
		Kind: team.KindInfo, Text: string(a.Kind) + " expired: " + a.Subject}
	var frame inbox.Frame
	switch a.Kind {
	case ledger.ApprovePlan:
		frame = inbox.PlanApprovalResponse{RequestID: a.RequestID, Feedback: why, Timestamp: inbox.Timestamp(time.Now())}
	case ledger.ApprovePermission:
		frame = inbox.PermissionResponse{RequestID: a.RequestID, Error: why}
	case ledger.ApproveReview, ledger.ApproveDelegation:
	}
	if frame != nil {
		text, err := inbox.Encode(frame)
		if err != nil {
			return err
		}
		n.Kind, n.Text = frame.Kind(), text
	}
	out, err := m.Ledger.Answer(ctx, ledger.AnswerIn{ID: a.ID, Expired: true, Feedback: why, By: "supervisor", Message: n})
	switch team.ReasonOf(err) {
	case team.ReasonAlreadyResolved, team.ReasonNotYet:
		return nil // answered meanwhile
	}
	if err == nil && out.Message != nil {
		m.Deliver(ctx, out.Deliveries)
	}
	return err
}

// Expiry ends the approval requests that were not answered by their deadline.
type Expiry struct {
	loop.Quiet
	team loop.Team
}

// NewExpiry returns the service.
func NewExpiry(t loop.Team) *Expiry { return &Expiry{team: t} }

// Ready checks the pending requests.
func (x *Expiry) Ready() { x.look() }

// Event checks a new request.
func (x *Expiry) Event(e ledger.Event) {
	if e.What == team.EventApprovalAsked {
		x.Bus.After("approvals", time.Millisecond, x.look)
	}
}

// Jumped checks the deadlines by the time of day.
func (x *Expiry) Jumped(time.Duration) {
	if x.Bus.Armed("approvals") {
		x.Bus.After("approvals", time.Millisecond, x.look)
	}
}

// look ends expired requests, and arms a timer for the next deadline.
func (x *Expiry) look() {
	x.Bus.Go("expire approvals", func(ctx context.Context) func() {
		pending, err := x.team.Ledger.Approvals(ctx, ledger.ApprovalFilter{State: ledger.ApprovalPending})
		if err != nil {
			x.team.Log.Warn("read approvals", "err", err)
			return nil
		}
		var next time.Duration
		for _, a := range pending {
			if a.Deadline == 0 {
				continue
			}
			if left := time.Until(time.UnixMilli(a.Deadline)); left > 0 {
				if left += time.Millisecond; next == 0 || left < next {
					next = left
				}
				continue
			}
			if err := Expire(ctx, x.team.Mailer(), a); err != nil {
				x.team.Log.Warn("expire approval", "id", a.ID, "err", err)
				next = time.Second
			}
		}
		return func() {
			if !x.Bus.Armed("approvals") { // otherwise a request came meanwhile: that look comes first
				x.Bus.After("approvals", next, x.look)
			}
		}
	})
}
