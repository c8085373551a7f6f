package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
)

// Send posts a message and mails it. It succeeds once the message is durable;
// what has not reached its mailbox yet is told in the deliveries.
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
	if late := notMailed(ds); late != "" {
		out.Message = "Message posted; it will be delivered, but it is not in the inbox yet of " + late
	}
	return out, nil
}

// notMailed names those whose mailbox could not be written, and why; "" when all were.
// What is posted is durable and is mailed later: sending it again would double it.
func notMailed(ds []ledger.Delivery) string {
	var late []string
	for _, d := range ds {
		if d.State == team.Posted && d.Reason != "" {
			late = append(late, d.Recipient+" ("+strings.TrimPrefix(d.Reason, "not mailed yet: ")+")")
		}
	}
	return strings.Join(late, ", ")
}

// compose checks the input of Send and makes the message.
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
	if strings.EqualFold(to.Name, c.Name) { // also before somebody is asked to approve it
		return m, ledger.ErrSelfSend()
	}
	m.To = to.Name
	return m, nil
}

func (t *Team) mailer(c Caller) supervisor.Mailer {
	return supervisor.Mailer{Layout: t.Layout, Ledger: t.as(c)}
}

// Post posts and mails a message as it is. Its From is the verified caller's, or
// the member that an operation here speaks for.
func (t *Team) Post(ctx context.Context, m ledger.NewMessage) (ledger.Message, error) {
	msg, _, err := t.mailer(Caller{Name: m.From}).Post(ctx, m)
	return msg, err
}

// PostAs posts and mails messages as they are, in the name of a verified caller;
// the agents' protocol messages go this way.
func (t *Team) PostAs(c Caller) func(context.Context, ledger.NewMessage) (ledger.Message, error) {
	return func(ctx context.Context, m ledger.NewMessage) (ledger.Message, error) {
		m.From = c.Name
		return t.Post(ctx, m)
	}
}

// Inbox reads a mailbox without marking anything. A member without mail has an
// empty one.
func (t *Team) Inbox(ctx context.Context, agent string, unreadOnly bool) (InboxOut, error) {
	m, err := t.Member(ctx, agent)
	if err != nil {
		return InboxOut{}, err
	}
	box, err := t.mailer(Caller{}).Box(m.Name)
	if err != nil {
		return InboxOut{}, err
	}
	read := box.Entries
	if unreadOnly {
		read = box.Unread
	}
	entries, err := t.mended(ctx, m, func() ([]inbox.Entry, error) { return read(ctx) })
	return InboxOut{Agent: m.Name, Entries: t.inboxEntries(ctx, m.Name, entries)}, err
}

// mended reads a mailbox, and once more after a damaged one was repaired and what
// it had lost was put back from the ledger.
func (t *Team) mended(ctx context.Context, m ledger.Member, read func() ([]inbox.Entry, error)) ([]inbox.Entry, error) {
	entries, err := read()
	var damaged *inbox.CorruptError
	if !errors.As(err, &damaged) {
		return entries, err
	}
	if err := t.mailer(Caller{Name: m.Name}).Restore(ctx, m); err != nil {
		return entries, errors.Join(damaged, err)
	}
	_, err = t.Ledger.Event(ctx, ledger.Event{What: "mailbox.repaired", ID: m.Name, After: filepath.Base(damaged.Moved)})
	if err != nil {
		return entries, err
	}
	return read()
}

// InboxConsume returns the caller's own unread mail and marks it read, and its
// deliveries as read.
func (t *Team) InboxConsume(ctx context.Context, c Caller) (InboxOut, error) {
	box, err := t.mailer(c).Box(c.Name)
	if err != nil {
		return InboxOut{}, err
	}
	m, err := t.Ledger.Member(ctx, c.Name)
	if err != nil {
		return InboxOut{}, err
	}
	if m.Name == team.LeadName { // what is asked there outlives its entry
		if err := t.TakeAsked(ctx); err != nil && !refusal(err) {
			return InboxOut{}, err
		}
	}
	entries, err := t.mended(ctx, m, func() ([]inbox.Entry, error) { return box.Consume(ctx, 0, nil) })
	if err != nil {
		return InboxOut{}, err
	}
	led := t.as(c)
	for _, e := range entries {
		if e.ID == "" {
			continue
		}
		_, err := led.Mark(ctx, ledger.DeliveryMark{MessageID: e.ID, Recipient: c.Name, State: team.Read, Evidence: "consumed by " + c.Name})
		if err != nil && !team.IsCode(err, team.CodeNotFound) {
			return InboxOut{}, err
		}
	}
	return t.prompted(ctx, c, InboxOut{Agent: c.Name, Entries: t.inboxEntries(ctx, m.Name, entries)}), nil
}

func (t *Team) inboxEntries(ctx context.Context, owner string, entries []inbox.Entry) []InboxEntry {
	out := make([]InboxEntry, 0, len(entries))
	for _, e := range entries {
		x := InboxEntry{
			From: e.From, Text: e.Text, Summary: e.Summary, Timestamp: e.Timestamp,
			Color: e.Color, Read: e.Read, ID: e.ID, Kind: string(team.KindMessage),
		}
		kind, known, verified := t.vouched(ctx, owner, e)
		x.Verified = verified
		if f, ok := inbox.Parse(e.Text); ok && (kind == f.Kind() || !known) {
			x.Kind, x.Frame = string(f.Kind()), json.RawMessage(e.Text)
		}
		out = append(out, x)
	}
	return out
}

// vouched is what the ledger says of an entry: of which kind it was posted, whether it
// knows the message at all, and whether the entry is that message, to this mailbox, from
// this sender and in these words. A teammate may write any text: what came through the
// ledger has the kind that it was posted with, and where that cannot be read the entry is
// plain text. Of what programs without a ledger wrote there is only the text.
func (t *Team) vouched(ctx context.Context, owner string, e inbox.Entry) (kind team.Kind, known, verified bool) {
	if e.ID == "" {
		return "", false, false
	}
	msg, err := t.Ledger.Message(ctx, e.ID)
	if err != nil {
		return "", !team.IsCode(err, team.CodeNotFound), false
	}
	if _, err := t.Ledger.Delivery(ctx, e.ID, owner); err != nil || !strings.EqualFold(msg.From, e.From) {
		return "", true, false
	}
	return msg.Kind, true, msg.Text == e.Text
}
