package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
)

// Send posts a message and mails it. It succeeds once the message is durable; recipients not yet
// reached are listed in Sent.Deliveries.
func (t *Team) Send(ctx context.Context, c Caller, in SendIn) (Sent, error) {
	switch in.Type {
	case "shutdown_response":
		return t.answerShutdown(ctx, c, in)
	case string(team.KindPlanApprovalResponse):
		return t.answerPlan(ctx, c, in)
	case string(team.KindShutdownRequest):
		return t.requestShutdown(ctx, c, in)
	}
	if err := t.may(ctx, c, OpSend); err != nil {
		return Sent{}, err
	}
	msg, err := t.compose(ctx, c, in)
	if err != nil {
		return Sent{}, err
	}
	if err := t.checkHops(ctx, c, msg); err != nil {
		return Sent{}, err
	}
	if msg.Kind == team.KindTaskRequest {
		approval, err := t.mayDelegate(ctx, c, OpDelegate, in.Task)
		if err != nil {
			return Sent{}, err
		}
		if approval {
			a, err := t.askDelegation(ctx, c, msg.To+": "+msg.Summary, delegation{Post: &msg})
			return Sent{Message: "The request waits for approval", Approval: a.ID, Deliveries: []ledger.Delivery{}}, err
		}
	}
	posted, ds, err := t.mailer(c).Post(ctx, msg)
	if err != nil {
		return Sent{}, err
	}
	t.carry(ctx, ds)
	out := Sent{Success: true, MessageID: posted.ID, Deliveries: ds, Routing: t.routing(ctx, posted)}
	for _, d := range ds {
		out.Recipients = append(out.Recipients, d.Recipient)
	}
	switch {
	case posted.To != "":
		out.Message = fmt.Sprintf("Message sent to %s's inbox", posted.To)
	case len(ds) == 0:
		out.Message, out.Recipients = "No teammates to broadcast to", []string{}
	default:
		out.Message = fmt.Sprintf("Message broadcast to %d teammate(s): %s", len(ds), strings.Join(out.Recipients, ", "))
	}
	out.NotReading = t.notReading(ctx, ds)
	if late := notMailed(ds); late != "" {
		out.Message = "Message posted; it will be delivered, but it is not in the inbox yet of " + late
	}
	return out, nil
}

// notMailed returns the recipients whose mailbox could not be written, with the reasons; "" if
// there are none. A posted message is durable and is mailed later: sending it again would
// duplicate it.
func notMailed(ds []ledger.Delivery) string {
	var late []string
	for _, d := range ds {
		if d.State == team.Posted && d.Reason != "" {
			late = append(late, d.Recipient+" ("+strings.TrimPrefix(d.Reason, "not mailed yet: ")+")")
		}
	}
	return strings.Join(late, ", ")
}

// compose validates the input of Send and returns the message.
func (t *Team) compose(ctx context.Context, c Caller, in SendIn) (ledger.NewMessage, error) {
	m := ledger.NewMessage{
		From: c.Name, Text: in.Content,
		Parent: in.Parent, IdemKey: in.IdemKey, RequestID: in.RequestID,
	}
	toOne := true
	switch k := team.Kind(in.Type); k {
	case "", team.KindMessage:
		m.Kind = team.KindMessage
	case team.KindBroadcast:
		m.Kind, toOne = k, false
	case team.KindInfo, team.KindError:
		m.Kind, toOne = k, in.Recipient != ""
	case team.KindTaskRequest, team.KindTaskResponse:
		m.Kind = k
	default:
		return m, team.Errorf(team.CodeInvalid, "unknown message type %q", in.Type).
			WithHint("message, broadcast, task_request, task_response, info, error, shutdown_request, shutdown_response or plan_approval_response")
	}
	if !toOne {
		if err := t.mayBroadcast(ctx, c); err != nil {
			return m, err
		}
	}
	if err := t.handOn(ctx, &m, in); err != nil {
		return m, err
	}
	if strings.TrimSpace(m.Text) == "" {
		return m, team.Errorf(team.CodeInvalid, "content must not be empty")
	}
	m.Summary = inbox.Summary(in.Summary, m.Text)
	if !toOne {
		if in.Recipient != "" {
			return m, team.Errorf(team.CodeInvalid, "a broadcast has no recipient").WithHint("type message sends to one")
		}
		return m, nil
	}
	if in.Recipient == "" {
		return m, team.Errorf(team.CodeInvalid, "recipient is required for %s type", m.Kind)
	}
	to, err := t.Member(ctx, in.Recipient)
	if err != nil {
		return m, err
	}
	if strings.EqualFold(to.Name, c.Name) { // before anyone is asked to approve it
		return m, ledger.ErrSelfSend()
	}
	m.To = to.Name
	return m, nil
}

func (t *Team) mailer(c Caller) mail.Mailer {
	return mail.Mailer{Layout: t.Layout, Ledger: t.as(c), Via: t.via}
}

// Post posts and mails a message as it is. Its From is the verified caller's, or the member on
// whose behalf an operation here acts.
func (t *Team) Post(ctx context.Context, m ledger.NewMessage) (ledger.Message, error) {
	msg, _, err := t.mailer(Caller{Name: m.From}).Post(ctx, m)
	return msg, err
}

// PostAs returns a function that posts and mails messages unchanged in the name of a verified
// caller; agents' protocol messages use it.
func (t *Team) PostAs(c Caller) func(context.Context, ledger.NewMessage) (ledger.Message, error) {
	return func(ctx context.Context, m ledger.NewMessage) (ledger.Message, error) {
		m.From = c.Name
		return t.Post(ctx, m)
	}
}
