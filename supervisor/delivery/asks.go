package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/approval"
	"github.com/teamctl/teamctl/team"
)

// maxAsks bounds the requests kept for an agent whose channel is being opened.
const maxAsks = 16

// askFor queues a request of an agent for approval. A request that was queued before (by an
// earlier supervisor) is only recorded.
func (d *Delivery) askFor(m *recipient, a team.Ask) {
	kind := ledger.ApprovePermission
	switch a.For {
	case team.WaitPermission:
	case team.WaitPlan:
		kind = ledger.ApprovePlan
	case team.WaitQuestion, team.WaitTrust, team.WaitLogin:
		return // answered at the agent's own screen
	}
	row, c := m.row.Member, m.conn
	if c == nil && m.row.Channel && len(m.asks) < maxAsks { // the channel reports before it is known to be open
		m.asks = append(m.asks, a)
	}
	if c == nil || c.asked[a.ID] != 0 {
		return
	}
	c.asked[a.ID] = -1
	d.queue(row, c, kind, a, 0)
}

// queue queues a request beside the loop. A program may report a request only once, so one that
// cannot be recorded now is tried again while its channel lives, after failed attempts so far.
func (d *Delivery) queue(row ledger.Member, c *conn, kind ledger.ApprovalKind, a team.Ask, failed int) {
	d.Bus.Go("ask queued "+row.Name, func(ctx context.Context) func() {
		id, err := d.queueAsk(ctx, row, kind, a)
		if err == nil {
			return func() { d.askQueued(row.SessionKey, c, a.ID, id) }
		}
		d.team.Log.Warn("queue an approval", "member", row.Name, "request", a.ID, "err", err)
		return func() { d.askNotQueued(row.SessionKey, c, kind, a, failed+1, err) }
	})
}

// askNotQueued handles a request that could not be recorded, for that many times.
func (d *Delivery) askNotQueued(session string, c *conn, kind ledger.ApprovalKind, a team.Ask, failed int, why error) {
	if m := d.of(session); m == nil || m.conn != c {
		return
	}
	if neverQueued(why) {
		return // its mark stays: the same request would be refused again
	}
	d.Bus.After(askTimer(session, a.ID), tryAgainIn(failed), func() {
		m := d.of(session)
		if m == nil || m.conn != c {
			return
		}
		if _, settled := c.early[a.ID]; settled { // nobody was asked
			delete(c.asked, a.ID)
			delete(c.early, a.ID)
			return
		}
		d.queue(m.row.Member, c, kind, a, failed)
	})
}

// askTimer is the timer for the next attempt to queue a request.
func askTimer(session, request string) string { return "ask:" + session + ":" + request }

// neverQueued reports whether the ledger refuses a request for what it is.
func neverQueued(err error) bool {
	return team.IsCode(err, team.CodeInvalid) || team.IsCode(err, team.CodeDenied) || team.ReasonOf(err) == team.ReasonRequestTaken
}

func (d *Delivery) queueAsk(ctx context.Context, row ledger.Member, kind ledger.ApprovalKind, a team.Ask) (int64, error) {
	there, err := d.team.Ledger.Approval(ctx, a.ID)
	switch {
	case err == nil && there.RequestID == a.ID && there.Session == row.SessionKey:
		return there.ID, nil
	case err != nil && !team.IsCode(err, team.CodeNotFound):
		return 0, err
	}
	in := ledger.AskIn{Session: row.SessionKey, Kind: kind, RequestID: a.ID, Subject: a.Tool}
	words := a.Description
	if a.Screen { // includes the rest of the screen, after its question
		words, _, _ = strings.Cut(words, "\n")
	}
	if words != "" {
		in.Subject = strings.TrimPrefix(in.Subject+": "+inbox.Summary("", words), ": ")
	}
	if kind == ledger.ApprovePlan {
		in.Subject = inbox.Summary("", a.Plan)
	}
	if in.Payload, err = json.Marshal(a); err != nil {
		return 0, fmt.Errorf("encode a request: %w", err)
	}
	if _, err := d.team.Ledger.Setting(ctx, "answerer."+string(kind), &in.Answerer); err != nil {
		return 0, err
	}
	var wait string
	if _, err := d.team.Ledger.Setting(ctx, SettingDeadline, &wait); err != nil {
		return 0, err
	}
	if d, err := time.ParseDuration(wait); err == nil && d > 0 {
		in.Deadline = time.Now().Add(d).UnixMilli()
	}
	if kind == ledger.ApprovePermission && !a.Screen { // a screen's content is not a request by the program itself
		if in.Decided, err = approval.ByRules(ctx, d.team.Ledger, row, approval.RequestOf(a)); err != nil {
			return 0, err
		}
	}
	if in.Message, err = askMessage(row, in, a); err != nil {
		return 0, err
	}
	out, err := d.team.Ledger.As(row.Name).Ask(ctx, in)
	if err == nil && out.Message != nil {
		d.team.Mailer().Deliver(ctx, out.Deliveries)
	}
	return out.Approval.ID, err
}

// SettingDeadline is the setting with the maximum time for an answer, a duration.
const SettingDeadline = "approval-deadline"

// askMessage returns the message that notifies the lead of an agent's request.
func askMessage(row ledger.Member, in ledger.AskIn, a team.Ask) (*ledger.NewMessage, error) {
	var frame inbox.Frame = inbox.PermissionRequest{
		RequestID: a.ID, AgentID: row.Name, ToolName: a.Tool, ToolUseID: a.ToolUseID, Description: a.Description,
		Input: orJSON(a.Input, "{}"), Suggestions: orJSON(a.Suggestions, "[]"),
	}
	if in.Kind == ledger.ApprovePlan {
		frame = inbox.PlanApprovalRequest{From: row.Name, Timestamp: inbox.Timestamp(time.Now()), PlanFilePath: a.PlanPath, PlanContent: a.Plan, RequestID: a.ID}
	}
	text, err := inbox.Encode(frame)
	if err != nil {
		return nil, err
	}
	return &ledger.NewMessage{
		Kind: frame.Kind(), From: row.Name, To: team.LeadName, RequestID: a.ID, Text: text,
		Summary: inbox.Summary("", string(in.Kind)+": "+in.Subject),
	}, nil
}

func orJSON(raw json.RawMessage, other string) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(other)
	}
	return raw
}

// askQueued handles an approval request that was queued for an agent.
func (d *Delivery) askQueued(session string, c *conn, request string, id int64) {
	why, settled := c.early[request]
	delete(c.early, request)
	c.asked[request] = id
	m := d.of(session)
	switch {
	case m == nil || m.conn != c:
	case settled:
		d.settledElsewhere(m, request, why)
	default:
		d.answerAsk(id) // it may already be answered
	}
}

// answerAsk sends the answer to a request to the agent, if its channel does that. The answer is
// sent once: nothing else sends it meanwhile.
func (d *Delivery) answerAsk(id int64) {
	for session, w := range d.ways {
		c := w.conn
		if c == nil {
			continue
		}
		m := d.of(session)
		if m == nil {
			continue
		}
		for request, known := range c.asked {
			if known != id {
				continue
			}
			if _, onItsWay := c.brings[id]; onItsWay {
				c.brings[id] = true
				continue
			}
			c.brings[id] = false
			name := m.row.Name
			d.Bus.Go("ask brought "+name, func(ctx context.Context) func() {
				how := d.bring(ctx, c, name, request, id)
				return func() { d.askBrought(session, c, request, id, how) }
			})
		}
	}
}

// answerTimer is the timer for the next attempt at answers that are owed.
func answerTimer(session string) string { return "answer:" + session }

// tryAgainIn returns the pause before what has failed that many times in a row is tried again.
func tryAgainIn(failed int) time.Duration {
	const first, most = time.Second, time.Minute
	return min(first<<min(failed-1, 6), most)
}

// bring answers one request, if it has been decided. An answer that may still reach the agent stays
// owed: only the channel's CodeNotFound says that the request is gone.
func (d *Delivery) bring(ctx context.Context, c *conn, name, request string, id int64) bringing {
	a, err := d.team.Ledger.Approval(ctx, strconv.FormatInt(id, 10))
	if err != nil {
		d.team.Log.Warn("read an answer", "member", name, "request", request, "err", err)
		return stillOwed
	}
	if a.State == ledger.ApprovalPending {
		return undecided
	}
	if a.State == ledger.ApprovalExpired && a.AnsweredBy == a.Name { // withdrawn by its own agent
		d.noteAnswered(ctx, a, errors.New(a.Feedback))
		return brought
	}
	c.calls.Lock()
	defer c.calls.Unlock()
	r := team.Reply{ID: request, For: team.WaitPermission, Allow: a.State == ledger.ApprovalApproved, Feedback: a.Feedback}
	with, err := approval.GrantedWith(ctx, d.team.Ledger, a)
	if err != nil {
		d.team.Log.Warn("answer", "member", name, "request", request, "err", err)
		return stillOwed
	}
	if len(with.Input) > 0 { // a channel can only permit or deny, not change the input
		r.Allow, r.Feedback = false, approval.OtherInput(with.Input)
	}
	if a.Kind == ledger.ApprovePlan {
		r.For, r.Mode = team.WaitPlan, with.Mode
	}
	err = c.Answer(ctx, r)
	if err != nil && !team.IsCode(err, team.CodeNotFound) {
		d.team.Log.Warn("answer", "member", name, "request", request, "err", err)
		return stillOwed
	}
	d.noteAnswered(ctx, a, err)
	return brought
}

// bringing is the result of an attempt to send an answer.
type bringing int

const (
	undecided bringing = iota
	stillOwed          // the next observation retries, or a timer: its dialog may still appear
	brought            // or no longer needed
)

// askBrought handles the result of an attempt to send an answer.
func (d *Delivery) askBrought(session string, c *conn, request string, id int64, how bringing) {
	again := c.brings[id]
	delete(c.brings, id)
	switch {
	case how == brought:
		delete(c.asked, request)
		c.failed = 0
	case again:
		d.answerAsk(id)
	case how == stillOwed && !slices.Contains(c.owed, id):
		c.owed = append(c.owed, id)
		if name := answerTimer(session); !d.Bus.Armed(name) {
			c.failed++
			d.Bus.After(name, tryAgainIn(c.failed), func() {
				if m := d.of(session); m != nil {
					d.answerOwed(m)
				}
			})
		}
	}
}

// answerOwed retries unsent answers after an observation of the agent. A running attempt may have
// looked too early.
func (d *Delivery) answerOwed(m *recipient) {
	if m.conn == nil {
		return
	}
	for id := range m.conn.brings {
		m.conn.brings[id] = true
	}
	owed := m.conn.owed
	m.conn.owed = nil
	for _, id := range owed {
		d.answerAsk(id)
	}
}

// ownWay reports whether an answer is returned to a foreign agent by its own request, and not as
// mail. If a key answers, the answer's text is sent as mail.
func ownWay(ctx context.Context, l *ledger.Ledger, msg ledger.Message) bool {
	if msg.Kind != team.KindPermissionResponse && msg.Kind != team.KindPlanApprovalResponse || msg.RequestID == "" {
		return false
	}
	a, err := l.Approval(ctx, msg.RequestID)
	var ask team.Ask
	if err != nil || json.Unmarshal(a.Payload, &ask) != nil || ask.ID != msg.RequestID || ask.For == "" {
		return false
	}
	return !ask.Keys || !hasWords(msg)
}

// hasWords reports whether an answer contains more than yes or no.
func hasWords(msg ledger.Message) bool {
	f, _ := inbox.Parse(msg.Text)
	r, ok := f.(inbox.PermissionResponse)
	return ok && (r.Error != "" || len(r.UpdatedInput) > 0 && string(r.UpdatedInput) != "null")
}

// noteAnswered settles the mail with an answer: the agent has it already, or no longer needs it.
func (d *Delivery) noteAnswered(ctx context.Context, a ledger.Approval, answer error) {
	waiting, err := d.team.Ledger.Waiting(ctx, a.Session)
	if err != nil {
		d.team.Log.Warn("settle the mail of an answer", "member", a.Name, "request", a.RequestID, "err", err)
		return
	}
	row := ledger.Member{Name: a.Name, SessionKey: a.Session}
	for _, o := range waiting {
		if o.Message.RequestID != a.RequestID || !ownWay(ctx, d.team.Ledger, o.Message) {
			continue
		}
		mark := ledger.DeliveryMark{MessageID: o.Message.ID, Recipient: o.Delivery.Recipient, State: team.Accepted, Evidence: "it was the answer to its own request"}
		if answer != nil {
			mark.State, mark.Evidence, mark.Reason = team.Dropped, "", "no longer needed: "+answer.Error()
		}
		if err := d.noteDelivered(ctx, row, []ledger.DeliveryMark{mark}, []string{o.Message.ID}); err != nil {
			d.team.Log.Warn("settle the mail of an answer", "member", a.Name, "request", a.RequestID, "err", err)
		}
	}
}

// answeredThere is the reason for withdrawing a request that was answered at the agent itself.
const answeredThere = "answered at its own screen"

// settledElsewhere withdraws a request that no longer needs an answer.
func (d *Delivery) settledElsewhere(m *recipient, request, why string) {
	if m.conn == nil {
		return
	}
	id := m.conn.asked[request]
	if id == -1 { // it is being queued: askQueued withdraws it
		m.conn.early[request] = why
	}
	if id < 0 {
		return
	}
	delete(m.conn.asked, request)
	if id <= 0 {
		return
	}
	name := m.row.Name
	d.beside("settle a request", func(ctx context.Context) {
		a, err := d.team.Ledger.Approval(ctx, strconv.FormatInt(id, 10))
		if err == nil && a.State != ledger.ApprovalPending {
			d.noteAnswered(ctx, a, errors.New(why))
			return
		}
		d.withdraw(ctx, name, id, why)
	})
}
