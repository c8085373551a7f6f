package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// AskIn is a request for approval. Message, if set, is posted with it: its Kind
// is the request's frame, its RequestID the approval's.
type AskIn struct {
	RequestID string          `json:"requestId"`
	Kind      ApprovalKind    `json:"kind"`
	Session   string          `json:"session"`
	Answerer  string          `json:"answerer,omitempty"` // default AnswererPerson
	Task      string          `json:"task,omitempty"`
	Subject   string          `json:"subject"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Deadline  int64           `json:"deadline,omitempty"` // Unix milliseconds; 0 means none
	Message   *NewMessage     `json:"message,omitempty"`
	// Refusal is posted to the requester if the request is refused because
	// another plan is pending. The request is then recorded as rejected and is
	// not an error: it is for requesters that cannot see an error.
	Refusal *NewMessage `json:"refusal,omitempty"`
	// Decided answers the request as it is recorded: nothing is posted and no
	// decision is awaited.
	Decided *Decided `json:"decided,omitempty"`
}

// Decided is an answer that was known before the request.
type Decided struct {
	Approve bool   `json:"approve"`
	By      string `json:"by"`
	Why     string `json:"why"`
}

// AnswerIn is the answer to one approval. Message, if set, notifies the
// requester; it is omitted if the requester has left, or has the name that the
// message is from: the lead, which a person answers.
type AnswerIn struct {
	ID      int64 `json:"id"`
	Approve bool  `json:"approve"`
	Expired bool  `json:"expired,omitempty"` // not an answer: its deadline has passed
	// Elsewhere is not an answer either: the requester got one by other means.
	// It has no consequences.
	Elsewhere bool        `json:"elsewhere,omitempty"`
	Feedback  string      `json:"feedback,omitempty"`
	By        string      `json:"by"`               // name of the answerer; verified by the caller
	Person    bool        `json:"person,omitempty"` // a person, whose name is that of the lead
	Mode      team.Mode   `json:"mode,omitempty"`   // for an approved plan: the member's next mode
	Message   *NewMessage `json:"message,omitempty"`
	// Comments are the answerer's drafts on the plan, by number, which the message contains. If
	// there are others, the plan is not answered.
	Comments map[int]string `json:"comments,omitempty"`
	// Also is posted with an approval: what the requester was not allowed to
	// post by itself. It is checked as Post checks it.
	Also *NewMessage `json:"also,omitempty"`
	// Intent is stored with an approval: what must now be done outside the
	// ledger, see Intent.
	Intent json.RawMessage `json:"intent,omitempty"`
}

// Settled is an approval and the messages posted for it.
type Settled struct {
	Approval   Approval   `json:"approval"`
	Message    *Message   `json:"message,omitempty"`
	Deliveries []Delivery `json:"deliveries,omitempty"`

	Also           *Message   `json:"also,omitempty"`
	AlsoDeliveries []Delivery `json:"alsoDeliveries,omitempty"`
}

// Ask records a request for approval and posts its message, both or neither. A
// repeated request id of the same session returns the first request. Errors:
// CodeConflict (plan_pending: a member has at most one pending plan,
// request_taken), CodeDenied (member_removed), and those of Post.
func (l *Ledger) Ask(ctx context.Context, in AskIn) (Settled, error) {
	return write[Settled](ctx, l, opApprovalAsk, askArgs{in, team.NewUUID()})
}

// Answer ends a pending approval with all its consequences: an approved plan
// changes the member's mode, an approved review completes the task, a rejected
// one returns it to its owner. Errors: CodeNotFound (approval_not_found),
// CodeConflict (already_resolved, expired, drafts_changed), CodeDenied
// (own_request).
func (l *Ledger) Answer(ctx context.Context, in AnswerIn) (Settled, error) {
	return write[Settled](ctx, l, opApprovalAnswer, answerArgs{in, team.NewUUID(), team.NewUUID()})
}

// Withdraw ends a request whose requester no longer awaits it, and records why:
// it was answered at the agent itself, or the turn that made it is over. It has
// no consequences; a request answered meanwhile is unchanged. by names the
// component that found out.
func (l *Ledger) Withdraw(ctx context.Context, id int64, by, why string) error {
	_, err := l.As(by).Answer(ctx, AnswerIn{ID: id, Elsewhere: true, By: by, Feedback: why})
	if team.ReasonOf(err) == team.ReasonAlreadyResolved {
		return nil
	}
	return err
}

type askArgs struct {
	AskIn
	MessageID string `json:"messageId"`
}

type answerArgs struct {
	AnswerIn
	MessageID string `json:"messageId"`
	AlsoID    string `json:"alsoId"`
}

func askApproval(t *tx, a askArgs) (Settled, error) {
	if a.RequestID == "" || a.Subject == "" || isNumber(a.RequestID) {
		return Settled{}, team.Errorf(team.CodeInvalid, "a request for approval needs an id and a subject")
	}
	m, err := t.memberBySession(a.Session)
	if err != nil {
		return Settled{}, err
	}
	if m.RemovedAt != 0 {
		return Settled{}, team.Errorf(team.CodeDenied, "%s has left the team", m.Name).WithReason(team.ReasonMemberRemoved)
	}
	var first Approval
	there, err := t.one(sqlApprovalReq, func(r *sql.Rows) (err error) {
		first, err = scanApproval(r)
		return err
	}, a.RequestID)
	switch {
	case err != nil:
		return Settled{}, err
	case there && first.Session == a.Session && first.Kind == a.Kind:
		return Settled{Approval: first}, nil
	case there:
		return Settled{}, team.Errorf(team.CodeConflict, "request id %q is already in use", a.RequestID).WithReason(team.ReasonRequestTaken)
	}
	if a.Kind == ApprovePlan {
		err := t.onePlan(m)
		if a.Refusal != nil && team.ReasonOf(err) == team.ReasonPlanPending {
			return t.refuseAsk(a, m, err.Error())
		}
		if err != nil {
			return Settled{}, err
		}
	}
	if a.Decided != nil {
		return t.askDecided(a, m)
	}
	out := Settled{}
	if a.Message != nil {
		if out, err = t.approvalMail(*a.Message, a.MessageID); err != nil {
			return out, err
		}
	}
	msg := ""
	if out.Message != nil {
		msg = out.Message.ID
	}
	out.Approval, err = t.putApproval(Approval{RequestID: a.RequestID, Kind: a.Kind, Session: m.SessionKey, Name: m.Name,
		Answerer: orDefault(a.Answerer, AnswererPerson), Task: a.Task, Subject: a.Subject, Payload: a.Payload,
		Message: msg, Deadline: a.Deadline})
	if err != nil || a.Kind == ApproveDelegation {
		return out, err
	}
	return out, t.setWaiting(m, true)
}

// askDecided records a request together with its known answer.
func (t *tx) askDecided(a askArgs, m Member) (out Settled, err error) {
	if a.Decided.By == "" || a.Decided.Why == "" || a.Kind != ApprovePermission {
		return out, team.Errorf(team.CodeInvalid, "only a permission request can be answered in advance, with the answerer and a reason")
	}
	out.Approval, err = t.putApproval(Approval{RequestID: a.RequestID, Kind: a.Kind, Session: m.SessionKey, Name: m.Name,
		Answerer: orDefault(a.Answerer, AnswererPerson), Task: a.Task, Subject: a.Subject, Payload: a.Payload})
	if err != nil {
		return out, err
	}
	state := ApprovalRejected
	if a.Decided.Approve {
		state = ApprovalApproved
	}
	return out, t.settleApproval(&out.Approval, state, a.Decided.By, a.Decided.Why)
}

// refuseAsk records a request as rejected and notifies the requester.
func (t *tx) refuseAsk(a askArgs, m Member, why string) (Settled, error) {
	n := *a.Refusal
	n.To, n.ToSession = m.Name, m.SessionKey
	out, err := t.approvalMail(n, a.MessageID)
	if err != nil {
		return out, err
	}
	out.Approval, err = t.putApproval(Approval{RequestID: a.RequestID, Kind: a.Kind, Session: m.SessionKey, Name: m.Name,
		Answerer: orDefault(a.Answerer, AnswererPerson), Subject: a.Subject, Payload: a.Payload,
		State: ApprovalRejected, Feedback: why, AnsweredBy: n.From, AnsweredAt: t.now})
	return out, err
}

func (t *tx) onePlan(m Member) error {
	var pending string
	_, err := t.one(sqlApprovalsOf, func(r *sql.Rows) error {
		p, err := scanApproval(r)
		if p.Kind == ApprovePlan {
			pending = p.RequestID
		}
		return err
	}, m.SessionKey)
	if err == nil && pending != "" {
		err = team.Errorf(team.CodeConflict, "%s already has a plan that awaits approval (%s)", m.Name, pending).
			WithReason(team.ReasonPlanPending).WithHint("teamctl approvals")
	}
	return err
}

// putApproval inserts an approval, which is pending unless it has a state.
func (t *tx) putApproval(a Approval) (Approval, error) {
	run, err := t.run()
	if err != nil {
		return a, err
	}
	a.Run, a.State, a.CreatedAt = run.ID, orDefault(a.State, ApprovalPending), t.now
	a.ID, _, err = value[int64](t, sqlApprovalPut, a.RequestID, a.Run, a.Kind, a.Session, a.Name, a.Answerer, a.Task, a.Attempt,
		a.Subject, jsonOrNull(a.Payload), a.Message, a.CreatedAt, a.Deadline,
		a.State, a.Feedback, a.AnsweredBy, a.AnsweredAt)
	if err != nil {
		return a, err
	}
	t.wrote = true
	return a, t.event(Event{Who: a.Name, What: team.EventApprovalAsked, ID: itoa(a.ID), After: string(a.State),
		Data: json.RawMessage(mustJSON(approvalData{a.Kind, a.RequestID, a.Name, a.Task, a.Feedback}))})
}

// setWaiting records on the roster that a member cannot continue without an
// answer, or that it can again.
func (t *tx) setWaiting(m Member, waiting bool) error {
	next := team.Waiting
	if !waiting {
		if m.Activity != team.Waiting {
			return nil
		}
		next = team.Working
	}
	_, err := updateMember(t, MemberPatch{SessionKey: m.SessionKey, Activity: &next})
	return err
}

func answerApproval(t *tx, a answerArgs) (Settled, error) {
	ap, err := t.approval(a.ID)
	if err != nil {
		return Settled{}, err
	}
	lapsed := ap.Deadline != 0 && ap.Deadline <= t.now
	switch {
	case ap.State != ApprovalPending:
		return Settled{}, team.Errorf(team.CodeConflict, "%s %d was already %s by %s", ap.Kind, ap.ID, ap.State, ap.AnsweredBy).
			WithReason(team.ReasonAlreadyResolved)
	case a.Elsewhere: // even after the deadline
	case a.Expired && !lapsed:
		return Settled{}, team.Errorf(team.CodeConflict, "%s %d has not reached its deadline", ap.Kind, ap.ID).WithReason(team.ReasonNotYet)
	case !a.Expired && lapsed:
		return Settled{}, team.Errorf(team.CodeConflict, "%s %d has expired", ap.Kind, ap.ID).WithReason(team.ReasonExpired)
	case !a.Expired && !a.Person && strings.EqualFold(a.By, ap.Name):
		return Settled{}, team.Errorf(team.CodeDenied, "%s cannot answer its own request", a.By).WithReason(team.ReasonOwnRequest)
	}
	m, err := t.memberBySession(ap.Session)
	if team.IsCode(err, team.CodeNotFound) {
		m, err = Member{Name: ap.Name, RemovedAt: t.now}, nil // it worked without being on the roster
	}
	if err != nil {
		return Settled{}, err
	}
	if len(a.Comments) > 0 {
		list, err := t.theDrafts(OnPlan(ap.RequestID), a.By, a.Comments)
		if err == nil {
			err = t.sentDrafts(list)
		}
		if err != nil {
			return Settled{}, err
		}
	}
	out := Settled{}
	if a.Message != nil && m.RemovedAt == 0 && !strings.EqualFold(m.Name, a.Message.From) {
		if out, err = t.answerMail(a, ap, m); err != nil {
			return out, err
		}
	}
	state := ApprovalRejected
	switch {
	case a.Expired, a.Elsewhere:
		state = ApprovalExpired
	case a.Approve:
		state = ApprovalApproved
	}
	if err := t.settleApproval(&ap, state, a.By, a.Feedback); err != nil {
		return out, err
	}
	out.Approval = ap
	if a.Also != nil && state == ApprovalApproved {
		p, err := postMessage(t, postArgs{*a.Also, a.AlsoID})
		if err != nil {
			return out, err
		}
		out.Also, out.AlsoDeliveries = &p.Message, p.Deliveries
	}
	if len(a.Intent) > 0 && state == ApprovalApproved {
		if _, err := t.exec(sqlIntentPut, ap.ID, string(a.Intent)); err != nil {
			return out, err
		}
	}
	return out, t.followAnswer(ap, m, a)
}

// answerMail notifies the requester, and marks the request as answered.
func (t *tx) answerMail(a answerArgs, ap Approval, m Member) (Settled, error) {
	n := *a.Message
	n.To, n.ToSession = m.Name, m.SessionKey
	if ap.Message != "" {
		run, err := t.run()
		if err != nil {
			return Settled{}, err
		}
		if run.ID == ap.Run {
			n.Parent = ap.Message
		}
		if err := t.answered(ap.Message, a.By, a.MessageID); err != nil {
			return Settled{}, err
		}
	}
	return t.approvalMail(n, a.MessageID)
}

// followAnswer applies the consequences of an answer.
func (t *tx) followAnswer(ap Approval, m Member, a answerArgs) error {
	switch ap.Kind {
	case ApprovePlan:
		if ap.State == ApprovalApproved && m.RemovedAt == 0 {
			if err := t.setMode(&m, orDefault(a.Mode, team.ModeDefault)); err != nil {
				return err
			}
		}
		return t.setWaiting(m, false)
	case ApprovePermission:
		return t.setWaiting(m, false)
	case ApproveReview:
		return t.followReview(ap)
	case ApproveDelegation:
	}
	return nil
}

func (t *tx) setMode(m *Member, mode team.Mode) error {
	if m.Spec.Mode == mode {
		return nil
	}
	after, err := updateMember(t, MemberPatch{SessionKey: m.SessionKey, Mode: &mode})
	if err != nil {
		return err
	}
	*m = after
	return nil
}

// approvalMail posts a message of an approval. Kinds that only an approval may
// post bypass the check of Post, and the message limit of the run: a team that
// has used up its messages can still request approval.
func (t *tx) approvalMail(n NewMessage, id string) (Settled, error) {
	if err := n.check(); err != nil {
		return Settled{}, err
	}
	run, err := t.run()
	if err != nil {
		return Settled{}, err
	}
	roster, err := t.members()
	if err != nil {
		return Settled{}, err
	}
	to, recipients, err := n.recipients(roster)
	if err != nil {
		return Settled{}, err
	}
	p, err := t.insertMessage(Message{ID: id, Run: run.ID, Kind: n.Kind, From: n.From, To: to, Parent: n.Parent, Hop: n.Hop,
		RequestID: n.RequestID, Text: n.Text, Summary: n.Summary, Payload: n.Payload, At: t.now}, recipients)
	return Settled{Message: &p.Message, Deliveries: p.Deliveries}, err
}

// approvalKind reports whether Post refuses a kind because it requests or
// answers an approval, which mail alone does not do.
func approvalKind(k team.Kind) bool {
	return slices.Contains([]team.Kind{
		team.KindPermissionRequest, team.KindPermissionResponse, team.KindPlanApprovalRequest, team.KindPlanApprovalResponse,
	}, k)
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
