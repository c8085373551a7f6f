package supervisor

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

// maxAsks bounds what is kept of an agent whose channel is being opened.
const maxAsks = 16

// askFor puts a question of an agent into the queue of approvals. One that was put
// there before (by an earlier supervisor) is only remembered.
func (s *Supervisor) askFor(m *member, a team.Ask) {
	kind := ledger.ApprovePermission
	switch a.For {
	case team.WaitPermission:
	case team.WaitPlan:
		kind = ledger.ApprovePlan
	case team.WaitQuestion, team.WaitTrust, team.WaitLogin:
		return // at the agent's own screen
	}
	row, l := m.row, m.line
	if l == nil && m.plan.Channel && len(m.asks) < maxAsks { // its channel speaks before it is known to be open
		m.asks = append(m.asks, a)
	}
	if l == nil || l.asked[a.ID] != 0 {
		return
	}
	l.asked[a.ID] = -1
	s.step(func(ctx context.Context) message {
		id, err := s.queueAsk(ctx, row, kind, a)
		if err != nil {
			s.log.Warn("queue an approval", "member", row.Name, "request", a.ID, "err", err)
			return nil
		}
		return askQueued{row.SessionKey, l, a.ID, id}
	})
}

func (s *Supervisor) queueAsk(ctx context.Context, row ledger.Member, kind ledger.ApprovalKind, a team.Ask) (int64, error) {
	open, err := s.cfg.Ledger.Approvals(ctx, ledger.ApprovalFilter{Session: row.SessionKey})
	if err != nil {
		return 0, err
	}
	for _, o := range open {
		if o.RequestID == a.ID {
			return o.ID, nil
		}
	}
	in := ledger.AskIn{Session: row.SessionKey, Kind: kind, RequestID: a.ID, Subject: a.Tool}
	words := a.Description
	if a.Screen { // after its question all that is on the screen, conversation included
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
	if _, err := s.cfg.Ledger.Setting(ctx, "answerer."+string(kind), &in.Answerer); err != nil {
		return 0, err
	}
	var wait string
	if _, err := s.cfg.Ledger.Setting(ctx, settingDeadline, &wait); err != nil {
		return 0, err
	}
	if d, err := time.ParseDuration(wait); err == nil && d > 0 {
		in.Deadline = time.Now().Add(d).UnixMilli()
	}
	if kind == ledger.ApprovePermission && !a.Screen { // what stands on a screen is no word of the program's
		if in.Decided, err = approval.ByRules(ctx, s.cfg.Ledger, row, approval.RequestOf(a)); err != nil {
			return 0, err
		}
	}
	if in.Message, err = askMessage(row, in, a); err != nil {
		return 0, err
	}
	out, err := s.cfg.Ledger.As(row.Name).Ask(ctx, in)
	if err == nil && out.Message != nil {
		s.mailer().Deliver(ctx, out.Deliveries)
	}
	return out.Approval.ID, err
}

// settingDeadline is how long an approval may wait for its answer, a duration.
const settingDeadline = "approval-deadline"

// askMessage tells the lead of what an agent asks.
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

// askQueued is an approval that was asked for an agent.
type askQueued struct {
	session string
	line    *line
	request string
	id      int64
}

func (q askQueued) apply(s *Supervisor) {
	why, settled := q.line.early[q.request]
	delete(q.line.early, q.request)
	q.line.asked[q.request] = q.id
	m := s.members[q.session]
	switch {
	case m == nil || m.line != q.line:
	case settled:
		s.settledElsewhere(m, q.request, why)
	default:
		s.answerAsk(q.id) // it may have been answered before
	}
}

// answerAsk brings the answer to an approval to the agent that asked, where its
// channel does. It goes out once: while it is on its way nobody else brings it.
func (s *Supervisor) answerAsk(id int64) {
	for _, m := range s.members {
		l := m.line
		if l == nil {
			continue
		}
		for request, known := range l.asked {
			if known != id {
				continue
			}
			if _, onItsWay := l.brings[id]; onItsWay {
				l.brings[id] = true
				continue
			}
			l.brings[id] = false
			name := m.row.Name
			s.step(func(ctx context.Context) message {
				return askBrought{l, request, id, s.bring(ctx, l, name, request, id)}
			})
		}
	}
}

// bring answers one request, if it has been decided.
func (s *Supervisor) bring(ctx context.Context, l *line, name, request string, id int64) bringing {
	a, err := s.cfg.Ledger.Approval(ctx, strconv.FormatInt(id, 10))
	if err != nil || a.State == ledger.ApprovalPending {
		return undecided
	}
	l.calls.Lock()
	defer l.calls.Unlock()
	r := team.Reply{ID: request, For: team.WaitPermission, Allow: a.State == ledger.ApprovalApproved, Feedback: a.Feedback}
	with, err := approval.GrantedWith(ctx, s.cfg.Ledger, a)
	if err != nil {
		s.log.Warn("answer", "member", name, "request", request, "err", err)
		return undecided
	}
	if len(with.Input) > 0 { // no channel can change what an agent does, only let it or not
		r.Allow, r.Feedback = false, approval.OtherInput(with.Input)
	}
	if a.Kind == ledger.ApprovePlan {
		r.For, r.Mode = team.WaitPlan, with.Mode
	}
	err = l.Answer(ctx, r)
	if err != nil && !team.IsCode(err, team.CodeNotFound) {
		s.log.Warn("answer", "member", name, "request", request, "err", err)
		if team.ReasonOf(err) == "no_dialog" {
			return noDialog
		}
	}
	s.noteAnswered(ctx, a, err)
	return brought
}

// bringing is how an attempt to bring an answer ended.
type bringing int

const (
	undecided bringing = iota
	noDialog           // it may come up: the next observation tries again
	brought            // or of no use any more
)

// askBrought ends an attempt to bring an answer.
type askBrought struct {
	line    *line
	request string
	id      int64
	how     bringing
}

func (a askBrought) apply(s *Supervisor) {
	again := a.line.brings[a.id]
	delete(a.line.brings, a.id)
	switch {
	case a.how == brought:
		delete(a.line.asked, a.request)
	case again:
		s.answerAsk(a.id)
	case a.how == noDialog && !slices.Contains(a.line.owed, a.id):
		a.line.owed = append(a.line.owed, a.id)
	}
}

// answerOwed tries again what could not be answered: something has been seen of the
// agent. What is on its way may have looked a moment too early.
func (s *Supervisor) answerOwed(m *member) {
	if m.line == nil {
		return
	}
	for id := range m.line.brings {
		m.line.brings[id] = true
	}
	owed := m.line.owed
	m.line.owed = nil
	for _, id := range owed {
		s.answerAsk(id)
	}
}

// ownWay reports whether an answer goes back to a foreign agent by the request that
// asked for it, and not as mail. Where that is a key, the words go as mail.
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

// hasWords reports whether an answer says more than yes or no.
func hasWords(msg ledger.Message) bool {
	f, _ := inbox.Parse(msg.Text)
	r, ok := f.(inbox.PermissionResponse)
	return ok && (r.Error != "" || len(r.UpdatedInput) > 0 && string(r.UpdatedInput) != "null")
}

// noteAnswered settles the mail that tells of an answer: the agent has it already, or
// has nothing more to do with it.
func (s *Supervisor) noteAnswered(ctx context.Context, a ledger.Approval, answer error) {
	waiting, err := s.cfg.Ledger.Waiting(ctx, a.Session)
	if err != nil {
		s.log.Warn("settle the mail of an answer", "member", a.Name, "request", a.RequestID, "err", err)
		return
	}
	row := ledger.Member{Name: a.Name, SessionKey: a.Session}
	for _, o := range waiting {
		if o.Message.RequestID != a.RequestID || !ownWay(ctx, s.cfg.Ledger, o.Message) {
			continue
		}
		mark := ledger.DeliveryMark{MessageID: o.Message.ID, Recipient: o.Delivery.Recipient, State: team.Accepted, Evidence: "it was the answer to its own request"}
		if answer != nil {
			mark.State, mark.Evidence, mark.Reason = team.Dropped, "", "nobody waits for it any more: "+answer.Error()
		}
		if err := s.noteDelivered(ctx, row, []ledger.DeliveryMark{mark}, []string{o.Message.ID}); err != nil {
			s.log.Warn("settle the mail of an answer", "member", a.Name, "request", a.RequestID, "err", err)
		}
	}
}

// answeredThere is why a request leaves the queue that somebody has answered at the
// agent itself.
const answeredThere = "answered at its own screen"

// settledElsewhere takes a request out of the queue that needs no answer any more.
func (s *Supervisor) settledElsewhere(m *member, request, why string) {
	if m.line == nil {
		return
	}
	id := m.line.asked[request]
	if id == -1 { // it is being queued: askQueued settles it
		m.line.early[request] = why
	}
	if id < 0 {
		return
	}
	delete(m.line.asked, request)
	if id <= 0 {
		return
	}
	name := m.row.Name
	s.step(func(ctx context.Context) message {
		a, err := s.cfg.Ledger.Approval(ctx, strconv.FormatInt(id, 10))
		if err == nil && a.State != ledger.ApprovalPending {
			s.noteAnswered(ctx, a, errors.New(why))
			return nil
		}
		s.withdraw(ctx, name, id, why)
		return nil
	})
}
