package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// mayBroadcast reports whether the caller may broadcast: leaders may, other members if the team's
// setting allows it.
func (t *Team) mayBroadcast(ctx context.Context, c Caller) error {
	if granted(c, OpBroadcast) != policy {
		return t.may(ctx, c, OpBroadcast)
	}
	v, err := t.setting(ctx, SetMemberBroadcast)
	if err != nil {
		return err
	}
	if on, _ := strconv.ParseBool(v); on {
		return nil
	}
	return errRole(c, OpBroadcast).WithHint("send to one member, or ask the lead")
}

// handOn completes a message that answers or forwards another. A forwarded message has one hop
// more than its original; an answer has the same number.
func (t *Team) handOn(ctx context.Context, m *ledger.NewMessage, in SendIn) error {
	if in.Task != "" {
		if m.Kind != team.KindTaskRequest {
			return team.Errorf(team.CodeInvalid, "only a task_request is about a task")
		}
		payload, err := json.Marshal(map[string]string{"taskId": in.Task})
		if err != nil {
			return err
		}
		m.Payload = payload
	}
	if in.Parent != "" {
		parent, err := t.Ledger.FindMessage(ctx, in.Parent)
		if err != nil {
			return err
		}
		m.Parent, m.Hop = parent.ID, parent.Hop
	}
	if in.Forward == "" {
		return nil
	}
	first, err := t.Ledger.FindMessage(ctx, in.Forward)
	if err != nil {
		return err
	}
	m.Hop = first.Hop + 1
	quoted := fmt.Sprintf("[from %s] %s", first.From, first.Text)
	if m.Text = strings.TrimSpace(m.Text); m.Text != "" {
		quoted = m.Text + "\n\n" + quoted
	}
	m.Text = quoted
	return nil
}

// checkHops drops a message that was forwarded too often. That is an error for the sender and is
// logged, so that a lost result is noticed.
func (t *Team) checkHops(ctx context.Context, c Caller, m ledger.NewMessage) error {
	most, err := t.settingInt(ctx, SetMaxHops, team.MaxHops)
	if err != nil || m.Hop <= most {
		return err
	}
	data, err := json.Marshal(map[string]any{"to": m.To, "hop": m.Hop, "limit": most, "summary": m.Summary})
	if err != nil {
		return err
	}
	if _, err := t.as(c).Event(ctx, ledger.Event{Who: c.Name, What: team.EventMessageDropped, After: string(team.Dropped), Data: data}); err != nil {
		return err
	}
	return team.Errorf(team.CodeLimit, "the message was dropped: it has made %d hops, the limit is %d", m.Hop, most).
		WithReason(team.ReasonHopLimit).WithHint("teamctl settings " + SetMaxHops)
}

// routing returns the routing shown to a sender, with colours if known.
func (t *Team) routing(ctx context.Context, m ledger.Message) *Routing {
	r := &Routing{Sender: m.From, Target: "@" + m.To, Summary: m.Summary, Content: m.Text}
	if m.To == "" {
		r.Target = "@team"
	}
	if from, err := t.Ledger.Member(ctx, m.From); err == nil {
		r.SenderColor = from.Color
	}
	if to, err := t.Ledger.Member(ctx, m.To); err == nil && m.To != "" {
		r.TargetColor = to.Color
	}
	return r
}

// answerShutdown handles a member's answer to a shutdown request that it has received.
func (t *Team) answerShutdown(ctx context.Context, c Caller, in SendIn) (Sent, error) {
	switch {
	case c.Person || c.Session == "" || c.Name == team.LeadName:
		return Sent{}, team.Errorf(team.CodeInvalid, "only a member answers a shutdown request").WithHint("teamctl shutdown sends one")
	case in.RequestID == "":
		return Sent{}, team.Errorf(team.CodeInvalid, "request_id is required for shutdown_response type")
	case in.Approve == nil:
		return Sent{}, team.Errorf(team.CodeInvalid, "approve is required for shutdown_response type")
	}
	reason := cmp.Or(in.Reason, in.Content) // both names are documented
	if !*in.Approve && strings.TrimSpace(reason) == "" {
		return Sent{}, team.Errorf(team.CodeInvalid, "content is required to reject a shutdown: say why")
	}
	req, err := t.shutdownRequest(ctx, c, in.RequestID)
	if err != nil {
		return Sent{}, err
	}
	m, err := t.Ledger.MemberBySession(ctx, c.Session)
	if err != nil {
		return Sent{}, err
	}
	out := ledger.NewMessage{From: c.Name, To: req.From, Parent: req.ID, RequestID: in.RequestID, IdemKey: "shutdown:" + req.ID}
	now := inbox.Timestamp(time.Now())
	var frame inbox.Frame = inbox.ShutdownRejected{RequestID: in.RequestID, From: c.Name, Reason: reason, Timestamp: now}
	say := fmt.Sprintf("Shutdown rejected. Agent %s continues.", c.Name)
	out.Summary = "shutdown rejected"
	if *in.Approve {
		frame = inbox.ShutdownApproved{RequestID: in.RequestID, From: c.Name, Timestamp: now, PaneID: m.PaneID, BackendType: m.Spec.Backend}
		say = fmt.Sprintf("Shutdown approved. Agent %s is now exiting.", c.Name)
		out.Summary = "shutdown approved"
	}
	if out.Text, err = inbox.Encode(frame); err != nil {
		return Sent{}, err
	}
	out.Kind = frame.Kind()
	posted, ds, err := t.mailer(c).Post(ctx, out)
	if err == nil && posted.Kind != out.Kind {
		err = team.Errorf(team.CodeConflict, "the shutdown request was answered already: %s", posted.Summary).WithReason(team.ReasonAlreadyResolved)
	}
	if err != nil {
		return Sent{}, err
	}
	if *in.Approve && team.KindOf(m.Spec.Agent).External { // no one else ends it
		if err := t.leave(ctx, c, m); err != nil {
			return Sent{}, err
		}
	}
	sent := Sent{Success: true, Message: say, MessageID: posted.ID, Deliveries: ds, RequestID: in.RequestID}
	for _, d := range ds { // the requester, and the lead
		sent.Recipients = append(sent.Recipients, d.Recipient)
	}
	return sent, nil
}

// shutdownRequest finds the request with this id that was sent to the caller.
func (t *Team) shutdownRequest(ctx context.Context, c Caller, id string) (ledger.Message, error) {
	ms, err := t.Ledger.Messages(ctx, ledger.MessageFilter{Kind: team.KindShutdownRequest, RequestID: id, Recipient: c.Name, Newest: true})
	if err != nil {
		return ledger.Message{}, err
	}
	for _, m := range ms {
		d, err := t.Ledger.Delivery(ctx, m.ID, c.Name)
		// A dropped delivery was for an earlier generation.
		if err == nil && d.Session == c.Session && d.State != team.Dropped {
			return m, nil
		}
	}
	return ledger.Message{}, team.Errorf(team.CodeNotFound, "no shutdown request %q was sent to %s", id, c.Name).
		WithReason(team.ReasonRequestNotFound).WithHint("teamctl inbox")
}

// answerPlan handles the lead's answer to a plan in the form of a message. It is treated like any
// answer; the caller's role decides, not the message.
func (t *Team) answerPlan(ctx context.Context, c Caller, in SendIn) (Sent, error) {
	if in.RequestID == "" || in.Approve == nil {
		return Sent{}, team.Errorf(team.CodeInvalid, "request_id and approve are required for plan_approval_response type")
	}
	a, err := t.Ledger.Approval(ctx, in.RequestID)
	if err == nil && a.Kind != ledger.ApprovePlan {
		err = team.Errorf(team.CodeNotFound, "no plan %q waits for approval", in.RequestID).WithReason(team.ReasonNoApproval)
	}
	if err != nil {
		return Sent{}, err
	}
	if in.Recipient != "" {
		if to, err := t.Member(ctx, in.Recipient); err != nil || to.SessionKey != a.Session {
			return Sent{}, team.Errorf(team.CodeInvalid, "plan %s was submitted by %s, not by %s", a.RequestID, a.Name, in.Recipient)
		}
	}
	done, err := t.Answer(ctx, c, AnswerIn{ID: in.RequestID, Approve: *in.Approve, Feedback: cmp.Or(in.Content, in.Reason)})
	if err != nil {
		return Sent{}, err
	}
	message := fmt.Sprintf("Plan of %s %s", done.Name, done.State)
	if done.Outcome != "" {
		message += " already"
	}
	return Sent{Success: true, Message: message, Deliveries: []ledger.Delivery{}, RequestID: done.RequestID}, nil
}

// requestPatience is how long a member that was asked by message to shut down may take: an agent
// during a turn answers after it.
const requestPatience = 10 * time.Minute

// requestShutdown asks a member to shut down and does not wait for the answer, which comes as a
// message. After an approval the member leaves the roster; after the deadline it is ended as in
// any shutdown.
func (t *Team) requestShutdown(ctx context.Context, c Caller, in SendIn) (Sent, error) {
	if err := t.may(ctx, c, OpShutdown); err != nil {
		return Sent{}, err
	}
	if in.Recipient == "" {
		return Sent{}, team.Errorf(team.CodeInvalid, "recipient is required for %s type", in.Type)
	}
	m, err := t.Member(ctx, in.Recipient)
	if err != nil {
		return Sent{}, err
	}
	list, err := t.stop(ctx, c, team.StopRequest{
		Names: []string{m.Name}, Reason: cmp.Or(in.Content, in.Reason), Wait: requestPatience, NoWait: true, Remove: true,
	})
	if err != nil {
		return Sent{}, err
	}
	out := Sent{Success: true, Deliveries: []ledger.Delivery{}, Recipients: []string{m.Name}, Target: m.Name}
	for _, s := range list {
		out.RequestID = s.Request
		switch {
		case s.Request != "":
			out.Message = fmt.Sprintf("Shutdown request sent to %s. Request ID: %s", m.Name, s.Request)
		case s.Outcome == team.StopAlready:
			out.Message = m.Name + " has stopped already"
		default:
			out.Message = m.Name + " cannot be asked and is being stopped"
		}
	}
	return out, nil
}
