package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/permit"
	"github.com/teamctl/teamctl/internal/publish"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/approval"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/team"
)

var approvalKinds = []ledger.ApprovalKind{
	ledger.ApprovePermission, ledger.ApprovePlan, ledger.ApproveReview, ledger.ApproveDelegation,
}

// PlanIn is a plan submitted for approval.
type PlanIn struct {
	Content   string `json:"plan_content"`
	Path      string `json:"plan_file_path,omitempty"`
	RequestID string `json:"request_id,omitempty"` // generated if empty
}

// PermissionIn requests permission to use a tool.
type PermissionIn struct {
	ToolName    string          `json:"tool_name"`
	ToolUseID   string          `json:"tool_use_id,omitempty"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"`
	Suggestions json.RawMessage `json:"permission_suggestions,omitempty"`
	RequestID   string          `json:"request_id,omitempty"`
	// Questions are the tool's questions, if any: an approval must answer them, so no rule can give
	// one.
	Questions []team.Question `json:"questions,omitempty"`
	// FixedInput says that the requester can use the tool only with this input: an approval with
	// another one is refused.
	FixedInput bool `json:"fixed_input,omitempty"`
}

// AnswerIn answers one approval request, by its number or request id.
type AnswerIn struct {
	ID           string          `json:"id"`
	Approve      bool            `json:"approve"`
	Feedback     string          `json:"feedback,omitempty"`        // required to reject
	Mode         string          `json:"permission_mode,omitempty"` // of an approved plan; default: default
	Answers      []string        `json:"answers,omitempty"`         // of a permission with questions, one for each
	UpdatedInput json.RawMessage `json:"updated_input,omitempty"`   // of a permission
	Updates      json.RawMessage `json:"permission_updates,omitempty"`
	// Comments sends the answerer's comments on the plan with its rejection, see ReviewAdd. If there
	// are some, Feedback may be empty.
	Comments bool `json:"comments,omitempty"`
	Always   bool `json:"always,omitempty"` // add the rule that allows it from now on; see RuleFor
}

// Approvals lists pending requests; with all also answered ones. Before that it queues requests
// from the lead's mailbox and expires requests whose deadline has passed.
func (t *Team) Approvals(ctx context.Context, all bool) ([]ledger.Approval, error) {
	if err := t.TakeAsked(ctx); err != nil && !refusal(err) {
		return nil, err
	}
	pending, err := t.Ledger.Approvals(ctx, ledger.ApprovalFilter{State: ledger.ApprovalPending})
	if err != nil {
		return nil, err
	}
	for _, a := range pending {
		if err := t.expire(ctx, a); err != nil {
			return nil, err
		}
	}
	f := ledger.ApprovalFilter{State: ledger.ApprovalPending}
	if all {
		f = ledger.ApprovalFilter{}
	}
	return t.Ledger.Approvals(ctx, f)
}

// AskPlan submits a plan to the lead. A member may have one pending plan.
func (t *Team) AskPlan(ctx context.Context, c Caller, in PlanIn) (ledger.Approval, error) {
	m, err := t.asker(ctx, c, OpPlan)
	if err != nil {
		return ledger.Approval{}, err
	}
	if strings.TrimSpace(in.Content) == "" {
		return ledger.Approval{}, team.Errorf(team.CodeInvalid, "the plan is empty")
	}
	now := time.Now()
	if in.RequestID == "" {
		in.RequestID = t.planID(ctx, m.AgentID, now)
	}
	return t.ask(ctx, c, ledger.AskIn{
		Kind: ledger.ApprovePlan, RequestID: in.RequestID, Subject: inbox.Summary("", in.Content),
	}, in, inbox.PlanApprovalRequest{
		From: m.Name, Timestamp: inbox.Timestamp(now), PlanFilePath: in.Path, PlanContent: in.Content, RequestID: in.RequestID,
	})
}

// planID returns an id for a plan that no earlier plan has: otherwise an old answer would answer
// the new plan.
func (t *Team) planID(ctx context.Context, agentID string, now time.Time) string {
	return inbox.NewRequestID("plan_approval", agentID, now, func(id string) bool {
		_, err := t.Ledger.Approval(ctx, id)
		return err == nil
	})
}

// AskPermission requests permission to use a tool. If a rule of the team applies, the returned
// approval has its answer.
func (t *Team) AskPermission(ctx context.Context, c Caller, in PermissionIn) (ledger.Approval, error) {
	m, err := t.asker(ctx, c, OpAsk)
	if err != nil {
		return ledger.Approval{}, err
	}
	if in.ToolName == "" {
		return ledger.Approval{}, team.Errorf(team.CodeInvalid, "a permission is asked for a tool")
	}
	for what, raw := range map[string]json.RawMessage{"input": in.Input, "permission_suggestions": in.Suggestions} {
		if len(raw) > 0 && !json.Valid(raw) {
			return ledger.Approval{}, team.Errorf(team.CodeInvalid, "%s is not valid JSON", what)
		}
	}
	if in.RequestID == "" {
		in.RequestID = fmt.Sprintf("perm-%d-%07s", time.Now().UnixMilli(), strconv.FormatUint(rand.Uint64N(78364164096), 36)) // unique, not secret
	}
	f := inbox.PermissionRequest{
		RequestID: in.RequestID, AgentID: m.Name, ToolName: in.ToolName, ToolUseID: in.ToolUseID, Description: in.Description,
		Input: in.Input, Suggestions: in.Suggestions,
	}
	if f.Input == nil {
		f.Input = json.RawMessage("{}")
	}
	if f.Suggestions == nil {
		f.Suggestions = json.RawMessage("[]")
	}
	decided, err := approval.ByRules(ctx, t.Ledger, m, permit.Of(in.ToolName, in.Input))
	if err != nil {
		return ledger.Approval{}, err
	}
	if len(in.Questions) > 0 && decided != nil && decided.Approve {
		decided = nil // a rule cannot answer questions
	}
	return t.ask(ctx, c, ledger.AskIn{
		Kind: ledger.ApprovePermission, RequestID: in.RequestID, Subject: permissionSubject(in.ToolName, in.Description), Decided: decided,
	}, in, f)
}

// asker returns the requesting member, or the program that leads. A person, who answers requests,
// is refused.
func (t *Team) asker(ctx context.Context, c Caller, op Operation) (ledger.Member, error) {
	if c.Person || c.Session == "" {
		return ledger.Member{}, team.Errorf(team.CodeInvalid, "only a member can request an approval; a person answers it").
			WithReason(team.ReasonPerson).WithHint("teamctl approvals")
	}
	if err := t.may(ctx, c, op); err != nil {
		return ledger.Member{}, err
	}
	return t.Ledger.MemberBySession(ctx, c.Session)
}

// ask records a request and mails its frame to the lead.
func (t *Team) ask(ctx context.Context, c Caller, in ledger.AskIn, payload any, frame inbox.Frame) (ledger.Approval, error) {
	in.Session = c.Session
	var err error
	if in.Payload, err = json.Marshal(payload); err != nil {
		return ledger.Approval{}, fmt.Errorf("encode the request: %w", err)
	}
	if in.Deadline, err = t.deadline(ctx); err != nil {
		return ledger.Approval{}, err
	}
	if c.Name == team.LeadName { // nobody on the team is above it
		in.Answerer, frame = ledger.AnswererPerson, nil
	} else if in.Answerer, err = t.answererOf(ctx, in.Kind); err != nil {
		return ledger.Approval{}, err
	}
	if frame != nil {
		text, err := inbox.Encode(frame)
		if err != nil {
			return ledger.Approval{}, err
		}
		in.Message = &ledger.NewMessage{
			Kind: frame.Kind(), From: c.Name, To: team.LeadName, RequestID: in.RequestID, Text: text,
			Summary: inbox.Summary("", string(in.Kind)+": "+in.Subject),
		}
	}
	out, err := t.as(c).Ask(ctx, in)
	if err != nil {
		return out.Approval, err
	}
	t.deliver(ctx, c, out)
	return out.Approval, nil
}

// deliver mails the messages that an approval has posted.
func (t *Team) deliver(ctx context.Context, c Caller, s ledger.Settled) {
	if s.Message != nil {
		t.mailer(c).Deliver(ctx, s.Deliveries)
	}
	if s.Also != nil {
		t.mailer(c).Deliver(ctx, s.AlsoDeliveries)
	}
}

// Answer answers a pending approval request and notifies the requester. It is the only way to
// answer: no message can. A person may answer all requests, a member those for its role, and
// nobody its own. With Always it adds a rule after the approval; the same answer again adds it if
// that was cut short.
func (t *Team) Answer(ctx context.Context, c Caller, in AnswerIn) (Answered, error) {
	var rule team.PermissionRule
	if in.Always {
		var err error
		if rule, err = t.ruleToAdd(ctx, c, in); err != nil {
			return Answered{}, err
		}
	}
	in, with, err := t.withComments(ctx, c, in)
	if err != nil {
		return Answered{}, err
	}
	a, err := t.answer(ctx, c, in, with)
	out := Answered{Approval: a}
	if err != nil {
		out, err = t.answered(ctx, in, a, err)
	}
	if err == nil && a.Kind == ledger.ApprovePlan {
		out.Unsent, err = t.unsent(ctx, c, a)
	}
	if err == nil && in.Always {
		out.Rule = &rule
		err = t.allow(ctx, c, rule)
	}
	return out, err
}

// answer is Answer, and refuses a request that was answered before.
func (t *Team) answer(ctx context.Context, c Caller, in AnswerIn, with planAnswer) (ledger.Approval, error) {
	a, err := t.Ledger.Approval(ctx, in.ID)
	if err != nil {
		return a, err
	}
	if err := t.mayAnswer(ctx, c, a); err != nil {
		return a, err
	}
	mode, err := team.ParseMode(in.Mode)
	if err != nil {
		return a, err
	}
	if mode == team.ModeBypass {
		m, err := t.Ledger.MemberBySession(ctx, a.Session)
		if err == nil {
			err = mayBypass(m)
		}
		if err == nil {
			err = personOnly(c, mode)
		}
		if err != nil {
			return a, err
		}
	}
	if in.Mode != "" && a.Kind != ledger.ApprovePlan {
		return a, team.Errorf(team.CodeInvalid, "only the answer to a plan sets a mode")
	}
	if in, err = in.withAnswers(a); err != nil {
		return a, err
	}
	if err := in.checkPermission(a); err != nil {
		return a, err
	}
	if !in.Approve && strings.TrimSpace(in.Feedback) == "" {
		return a, team.Errorf(team.CodeInvalid, "a rejection needs feedback: say what to change").WithHint("--feedback TEXT")
	}
	if a.State == ledger.ApprovalPending {
		if err := t.answeredElsewhere(ctx, a); err != nil {
			return a, err
		}
		if err := t.expire(ctx, a); err != nil {
			return a, err
		}
	}
	msg, err := answerMessage(a, c.Name, in, mode)
	if err != nil {
		return a, err
	}
	out := ledger.AnswerIn{ID: a.ID, Approve: in.Approve, Feedback: in.Feedback, By: c.Name, Person: c.Person, Mode: mode, Message: msg, Comments: with.drafts}
	if a.Kind == ledger.ApproveDelegation && in.Approve && a.State == ledger.ApprovalPending {
		var spawn *SpawnIn
		if out.Also, spawn, err = delegated(a); err != nil {
			return a, err
		}
		if spawn != nil {
			if out.Intent, err = t.spawnIntent(ctx, a, *spawn); err != nil {
				return a, err
			}
		}
	}
	if with.file != "" && len(with.drafts) > 0 {
		if err := writeReview(with.file, with.text); err != nil {
			return a, err
		}
	}
	settled, err := t.as(c).Answer(ctx, out)
	if err != nil {
		return a, err
	}
	t.deliver(ctx, c, settled)
	if a.Kind == ledger.ApprovePlan && in.Approve { // its mode has changed, and config.json must show that
		err = publish.Config(ctx, t.Layout, t.Ledger)
	}
	if a.Kind == ledger.ApproveReview && in.Approve {
		if task, err := t.Ledger.Task(ctx, a.Task); err == nil {
			t.MailCompleted(ctx, c, task)
		}
	}
	if out.Intent != nil {
		err = t.carryOut(ctx, settled.Approval)
	}
	return settled.Approval, err
}

// checkPermission refuses fields that an answer of the kind cannot have: no part of a permission
// is dropped silently.
func (in AnswerIn) checkPermission(a ledger.Approval) error {
	given := func(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
	if !given(in.UpdatedInput) && !given(in.Updates) {
		return nil
	}
	if a.Kind != ledger.ApprovePermission || !in.Approve {
		return team.Errorf(team.CodeInvalid, "only an approved permission has an updated input or permission updates")
	}
	var object map[string]json.RawMessage
	if given(in.UpdatedInput) && json.Unmarshal(in.UpdatedInput, &object) != nil {
		return team.Errorf(team.CodeInvalid, "updated_input is not a JSON object")
	}
	if given(in.UpdatedInput) && fixedInput(a) {
		return team.Errorf(team.CodeInvalid, "the program of %s cannot change the input of a call: approve it as it is, or reject it", a.Name).
			WithReason(team.ReasonFixedInput).WithHint(fmt.Sprintf("teamctl approvals reject %d --feedback TEXT, with what it is to do instead", a.ID))
	}
	var list []map[string]json.RawMessage
	if given(in.Updates) && json.Unmarshal(in.Updates, &list) != nil {
		return team.Errorf(team.CodeInvalid, "permission_updates is not a list of JSON objects").
			WithHint("take them from the request's permission_suggestions")
	}
	return nil
}

// fixedInput reports whether the requester only understands yes or no. That is the case for
// requests that a channel makes for its program, which are recorded as a team.Ask.
func fixedInput(a ledger.Approval) bool {
	var asked struct {
		For        team.WaitFor `json:"for"`
		FixedInput bool         `json:"fixed_input"`
	}
	return json.Unmarshal(a.Payload, &asked) == nil && (asked.For == team.WaitPermission || asked.FixedInput)
}

// mayAnswer checks whether the caller may answer a request.
func (t *Team) mayAnswer(ctx context.Context, c Caller, a ledger.Approval) error {
	op := OpAnswer
	if a.Kind == ledger.ApproveReview {
		op = OpReview
	}
	if strings.EqualFold(a.Name, c.Name) && !c.Person {
		return team.Errorf(team.CodeDenied, "%s cannot answer a request of its own", c.Name).WithReason(team.ReasonOwnRequest)
	}
	if err := t.may(ctx, c, op); err != nil {
		return err
	}
	if granted(c, op) == named && a.Answerer != string(c.Role) {
		return team.Errorf(team.CodeDenied, "%s %d must be answered by a %s, not by %s (%s)", a.Kind, a.ID, a.Answerer, c.Name, c.Role).
			WithReason(team.ReasonRole).WithHint("teamctl approvals, at the person's shell")
	}
	return nil
}

// answererOf returns the setting's value for requests of the kind, or the default for who answers
// besides a person: a leader decides about plans and delegation; only a person decides what a
// program is permitted to do.
func (t *Team) answererOf(ctx context.Context, kind ledger.ApprovalKind) (string, error) {
	v, err := t.setting(ctx, SetAnswerer+string(kind))
	if v == "" && (kind == ledger.ApprovePlan || kind == ledger.ApproveDelegation) {
		v = string(team.RoleLeader)
	}
	return v, err
}

// LeadAnswersPermissions reports whether a person has allowed the leading program to answer
// permission requests.
func (t *Team) LeadAnswersPermissions(ctx context.Context) (bool, error) {
	v, err := t.answererOf(ctx, ledger.ApprovePermission)
	return v == string(team.RoleLeader), err
}

// answerMessage returns the message that notifies the requester.
func answerMessage(a ledger.Approval, by string, in AnswerIn, mode team.Mode) (*ledger.NewMessage, error) {
	word := answerWord(in.Approve)
	m := &ledger.NewMessage{From: by, RequestID: a.RequestID, Summary: fmt.Sprintf("%s %s", a.Kind, word)}
	var frame inbox.Frame
	switch a.Kind {
	case ledger.ApprovePlan:
		f := inbox.PlanApprovalResponse{RequestID: a.RequestID, Approved: in.Approve, Timestamp: inbox.Timestamp(time.Now())}
		if in.Approve {
			f.PermissionMode = string(mode)
		} else {
			f.Feedback = in.Feedback
		}
		frame = f
	case ledger.ApprovePermission:
		f := inbox.PermissionResponse{RequestID: a.RequestID, Approve: in.Approve}
		if in.Approve {
			f.UpdatedInput, f.PermissionUpdates = in.UpdatedInput, in.Updates
		} else {
			f.Error = in.Feedback
		}
		frame = f
	case ledger.ApproveReview, ledger.ApproveDelegation:
		m.Kind, m.Text = team.KindInfo, fmt.Sprintf("%s %s: %s", a.Kind, word, a.Subject)
		if in.Feedback != "" {
			m.Text += "\n" + in.Feedback
		}
		return m, nil
	default:
		return nil, team.Errorf(team.CodeInternal, "unknown kind of approval %q", a.Kind)
	}
	text, err := inbox.Encode(frame)
	m.Kind, m.Text = frame.Kind(), text
	return m, err
}

// GrantedWith returns the contents of an approval.
func (t *Team) GrantedWith(ctx context.Context, a ledger.Approval) (team.Granted, error) {
	return approval.GrantedWith(ctx, t.Ledger, a)
}

// expire ends a request whose deadline has passed and notifies the requester.
func (t *Team) expire(ctx context.Context, a ledger.Approval) error {
	return services.Expire(ctx, t.mailer(Caller{Name: "supervisor"}), a)
}

// AwaitApproval waits for the answer to a request. A rejection is CodeDenied with the feedback;
// the end of the wait is CodeTimeout.
func (t *Team) AwaitApproval(ctx context.Context, id int64, timeout time.Duration) (_ ledger.Approval, err error) {
	ctx, leave := t.Attended(ctx)
	defer leave(&err)
	wait, cancel := bounded(ctx, timeout)
	defer cancel()
	changes, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		return ledger.Approval{}, err
	}
	defer stop()
	var lapse <-chan time.Time
	last := false
	for {
		a, err := t.Ledger.Approval(context.WithoutCancel(ctx), strconv.FormatInt(id, 10))
		if err != nil {
			return a, err
		}
		switch a.State {
		case ledger.ApprovalApproved:
			return a, nil
		case ledger.ApprovalRejected, ledger.ApprovalExpired:
			return a, team.Errorf(team.CodeDenied, "%s %d was %s: %s", a.Kind, a.ID, a.State, cmp.Or(a.Feedback, "no reason given")).
				WithReason(string(a.State))
		case ledger.ApprovalPending:
		}
		if last {
			return a, team.Errorf(team.CodeTimeout, "%s %d was not answered in %s", a.Kind, a.ID, timeout).WithHint("teamctl approvals")
		}
		if a.Deadline != 0 && lapse == nil {
			timer := time.NewTimer(time.Until(time.UnixMilli(a.Deadline)) + time.Millisecond)
			defer timer.Stop()
			lapse = timer.C
		}
		select {
		case <-changes:
		case <-lapse:
			if err := t.expire(context.WithoutCancel(ctx), a); err != nil {
				return a, err
			}
		case <-wait.Done():
			if last = over(ctx, wait, timeout); !last {
				return a, context.Cause(ctx)
			}
		}
	}
}
