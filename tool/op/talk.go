package op

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func talkOps() []Op {
	return []Op{
		with(Op{Name: "SendMessage", Verb: "send", Gates: []tool.Operation{tool.OpSend}}, send),
		with(Op{Name: "InboxRead", Verb: "inbox", Long: true}, inboxRead),
		with(Op{Name: "ThreadShow", Verb: "thread", ReadOnly: true, Idempotent: true}, threadShow),
	}
}

// SendIn sends a message.
type SendIn struct {
	TeamRef
	Type      MessageType `json:"type" jsonschema:"Kind of message. message, task_request, task_response and shutdown_request go to one recipient; broadcast to all; info and error to one or all."`
	Recipient string      `json:"recipient,omitempty" jsonschema:"Name of the member, name@team, or session key."`
	Content   string      `json:"content,omitempty" jsonschema:"The text, in UTF-8, at most 100 KiB. The reason of a shutdown request; the feedback of a rejection."`
	Summary   string      `json:"summary,omitempty" jsonschema:"5 to 10 words for lists."`
	RequestID string      `json:"request_id,omitempty" jsonschema:"Of the request that is answered."`
	Approve   *bool       `json:"approve,omitempty" jsonschema:"The answer of shutdown_response and plan_approval_response."`
	Reason    string      `json:"reason,omitempty" jsonschema:"Why a request is rejected; the same as content."`
	Parent    string      `json:"parent_message_id,omitempty" jsonschema:"Id of the message that this answers; required for task_response."`
	Task      string      `json:"task_id,omitempty" jsonschema:"Task that a task_request is about."`
	Forward   string      `json:"forward,omitempty" jsonschema:"Id of a message to hand on; its text follows content."`
	IdemKey   string      `json:"idempotency_key,omitempty" jsonschema:"Sending again with the same key sends nothing."`
}

// MessageType is the type of a message.
type MessageType string

// MessageTypes lists the types in documentation order.
func MessageTypes() []MessageType {
	return []MessageType{"message", typeBroadcast, "task_request", "task_response", "info", "error",
		typeShutdownRequest, "shutdown_response", "plan_approval_response"}
}

const (
	typeBroadcast       = "broadcast"
	typeShutdownRequest = "shutdown_request"
)

func send(ctx context.Context, s *Session, in SendIn) (tool.Sent, error) {
	if in.Type == typeBroadcast && in.TeamName == "" {
		if _, err := s.Env.Resolve(ctx, s.Current()); team.ReasonOf(err) == "team_not_found" && s.Current() == "" {
			return tool.Sent{}, team.Errorf(team.CodeNotFound, "Not in a team context.").WithReason(team.ReasonOf(err)).WithHint(team.HintOf(err))
		}
	}
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (tool.Sent, error) {
		return t.Send(ctx, c, tool.SendIn{
			Type: string(in.Type), Recipient: in.Recipient, Content: in.Content, Summary: in.Summary, RequestID: in.RequestID,
			Parent: in.Parent, Approve: in.Approve, Reason: in.Reason, Task: taskID(in.Task), Forward: in.Forward, IdemKey: in.IdemKey,
		})
	})
}

// ThreadShowIn names a thread.
type ThreadShowIn struct {
	TeamRef
	MessageID string `json:"message_id,omitempty" jsonschema:"A message of the conversation, or the first characters of its id; all those of the current run if left out."`
	Mine      bool   `json:"mine,omitempty" jsonschema:"Only messages from or to you."`
}

func threadShow(ctx context.Context, s *Session, in ThreadShowIn) (ledger.Thread, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (ledger.Thread, error) {
		id := ""
		if in.MessageID != "" {
			m, err := t.Ledger.FindMessage(ctx, in.MessageID)
			if err != nil {
				return ledger.Thread{}, err
			}
			id = m.ID
		}
		th, err := t.Ledger.Thread(ctx, id)
		if err == nil && in.Mine {
			th.Lines, err = MyLines(ctx, t, c, th.Lines)
		}
		if th.Lines == nil {
			th.Lines = []ledger.ThreadLine{}
		}
		return th, err
	})
}

// MyLines returns the messages of a thread from or to the caller.
func MyLines(ctx context.Context, t *tool.Team, c tool.Caller, lines []ledger.ThreadLine) ([]ledger.ThreadLine, error) {
	mine, err := t.Ledger.Messages(ctx, ledger.MessageFilter{With: c.Name})
	if err != nil {
		return nil, err
	}
	ids := make(map[string]bool, len(mine))
	for _, m := range mine {
		ids[m.ID] = true
	}
	out := []ledger.ThreadLine{}
	for _, l := range lines {
		if ids[l.ID] {
			out = append(out, l)
		}
	}
	return out, nil
}

func approvalOps() []Op {
	return []Op{
		with(Op{Name: "PlanSubmit", Verb: "ask plan", Gates: []tool.Operation{tool.OpPlan}, Long: true}, planSubmit),
		with(Op{Name: "ApprovalList", Verb: "approvals", ReadOnly: true, Idempotent: true}, approvalList),
		with(Op{Name: "ApprovalAnswer", Verb: "approvals approve", Gates: []tool.Operation{tool.OpAnswer, tool.OpReview}, Idempotent: true}, approvalAnswer),
	}
}

// PlanSubmitIn submits a plan.
type PlanSubmitIn struct {
	TeamRef
	Content     string `json:"plan_content" jsonschema:"The plan, in Markdown."`
	Path        string `json:"plan_file_path,omitempty" jsonschema:"File that the plan stands in."`
	RequestID   string `json:"request_id,omitempty" jsonschema:"Made where it is left out."`
	WaitSeconds int    `json:"wait_seconds,omitempty" jsonschema:"Wait so long for the answer; a rejection is an error with the feedback."`
}

// ApprovalOut is one approval.
type ApprovalOut struct {
	Success  bool            `json:"success"`
	Message  string          `json:"message"`
	Outcome  string          `json:"outcome,omitempty"` // already_approved or already_rejected: it was answered so before
	Approval ledger.Approval `json:"approval"`

	Rule   *team.PermissionRule `json:"rule,omitempty"`   // that allows it from now on
	Unsent int                  `json:"unsent,omitempty"` // comments of yours on the plan that did not go with the answer
}

func planSubmit(ctx context.Context, s *Session, in PlanSubmitIn) (ApprovalOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (ApprovalOut, error) {
		wait, err := seconds("wait_seconds", in.WaitSeconds)
		if err != nil {
			return ApprovalOut{}, err
		}
		a, err := t.AskPlan(ctx, c, tool.PlanIn{Content: in.Content, Path: in.Path, RequestID: in.RequestID})
		if err != nil {
			return ApprovalOut{}, err
		}
		if wait == 0 {
			return ApprovalOut{Success: true, Message: "Plan submitted for approval. Request ID: " + a.RequestID, Approval: a}, nil
		}
		progress(ctx, 0, 1, "waiting for approval %d", a.ID)
		if a, err = t.AwaitApproval(ctx, a.ID, wait); err != nil {
			return ApprovalOut{}, err
		}
		return ApprovalOut{Success: true, Message: "Plan approved", Approval: a}, nil
	})
}

// ApprovalListIn lists approvals.
type ApprovalListIn struct {
	TeamRef
	All bool `json:"all,omitempty" jsonschema:"Those that were answered or have expired too."`
}

// ApprovalListOut is the queue of approvals.
type ApprovalListOut struct {
	Approvals []ledger.Approval `json:"approvals"`
}

func approvalList(ctx context.Context, s *Session, in ApprovalListIn) (ApprovalListOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, _ tool.Caller) (ApprovalListOut, error) {
		list, err := t.Approvals(ctx, in.All)
		if list == nil {
			list = []ledger.Approval{}
		}
		return ApprovalListOut{Approvals: list}, err
	})
}

// ApprovalAnswerIn answers one approval request.
type ApprovalAnswerIn struct {
	TeamRef
	RequestID string            `json:"request_id" jsonschema:"Request id or number of the approval."`
	Approve   bool              `json:"approve" jsonschema:"true approves, false rejects."`
	Feedback  string            `json:"feedback,omitempty" jsonschema:"What is to be changed; required to reject."`
	Comments  bool              `json:"comments,omitempty" jsonschema:"Of a rejected plan: your comments on its lines go with it; feedback may then be left out."`
	Mode      team.Mode         `json:"permission_mode,omitempty" jsonschema:"Of an approved plan: the mode in which the member goes on; default if left out."`
	Answers   []string          `json:"answers,omitempty" jsonschema:"Of a permission that asks questions: an answer to each, in their order."`
	Input     json.RawMessage   `json:"updated_input,omitempty" jsonschema:"Of a permission: the input with which the tool may be used instead."`
	Updates   []json.RawMessage `json:"permission_updates,omitempty" jsonschema:"Of a permission: what is allowed from now on too, as the request suggests it."`
	Always    bool              `json:"always,omitempty" jsonschema:"Of an approved permission: a rule of the team allows the same from now on. Only a person can."`
}

func approvalAnswer(ctx context.Context, s *Session, in ApprovalAnswerIn) (ApprovalOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (ApprovalOut, error) {
		answer := tool.AnswerIn{ID: in.RequestID, Approve: in.Approve, Feedback: in.Feedback, Mode: string(in.Mode), Answers: in.Answers, UpdatedInput: in.Input, Always: in.Always, Comments: in.Comments}
		if len(in.Updates) > 0 {
			var err error
			if answer.Updates, err = json.Marshal(in.Updates); err != nil {
				return ApprovalOut{}, err
			}
		}
		a, err := t.Answer(ctx, c, answer)
		if err != nil {
			return ApprovalOut{}, err
		}
		again := ""
		if a.Outcome != "" {
			again = " already"
		}
		said := string(a.Kind) + " of " + a.Name + " " + string(a.State) + again
		if a.Rule != nil {
			said += ", and allowed from now on: " + a.Rule.String()
		}
		if a.Unsent > 0 {
			said += fmt.Sprintf(", without your comments on it: %d", a.Unsent)
		}
		return ApprovalOut{Success: true, Message: said, Outcome: a.Outcome, Approval: a.Approval, Rule: a.Rule, Unsent: a.Unsent}, nil
	})
}
