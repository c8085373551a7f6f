package hook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Prefixes of request ids for what agents request by a hook, or by a dialog that a hook reports:
// these requests end with the dialog. What an agent requests by a tool does not.
const (
	idHook   = tool.AskByHook
	idDialog = "dialog-"
)

// settleWithin bounds the work that remains after the agent has ended its hook.
const settleWithin = 2 * time.Second

// permission requests permission for the agent's tool call and returns the answer to the agent. If
// nobody answers, the agent's own dialog decides.
func (r *run) permission(ctx context.Context) error {
	var d *adapter.Decision
	var wrote bool
	r.tell(false)
	err := r.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
		if err := r.converse(c.Session); err != nil {
			return err
		}
		asked, err := r.ask(ctx, t, c)
		if err != nil {
			return err
		}
		a, err := t.AwaitApproval(ctx, asked.ID, 0)
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
		defer cancel()
		switch {
		case err == nil:
			with, err := t.GrantedWith(after, a)
			if err != nil { // the approved content is unknown: the agent's own dialog decides
				return err
			}
			input, ok := r.hook.Granted(with.Input)
			if !ok { // an unanswered question
				return nil
			}
			d = &adapter.Decision{Allow: true, Input: input, Updates: with.Updates, Mode: with.Mode}
			if d.Mode == "" {
				if d.Mode, err = r.planned(after, t, c); err != nil {
					return err
				}
			}
		case team.IsCode(err, team.CodeDenied) && team.ReasonOf(err) == string(ledger.ApprovalRejected):
			d = &adapter.Decision{Message: a.Feedback}
		case ctx.Err() != nil: // the agent has ended its hook: the dialog was answered
			return firstError(elsewhere(after, t, asked), err)
		default:
			return err
		}
		wrote = true
		if err := r.Write(adapter.Decide(d)); err != nil {
			return err
		}
		return r.noteAnswer(after, t, c, a)
	})
	if !wrote {
		err = firstError(err, r.Write(adapter.HookReply{}))
	}
	if d != nil {
		r.say(team.Observation{Tier: team.TierHook, Activity: team.Working, At: time.Now(), Source: "hook PermissionRequest, answered"})
	}
	return err
}

// planned returns the mode in which the agent continues after an answer to anything but its plan.
// The agent reports plan mode although the team has approved a plan that it submitted by a tool.
// "" leaves the mode as it is.
func (r *run) planned(ctx context.Context, t *tool.Team, c tool.Caller) (team.Mode, error) {
	if !r.hook.Planning() {
		return "", nil
	}
	m, err := t.Ledger.MemberBySession(ctx, c.Session)
	if err != nil || m.Spec.Mode == team.ModePlan || m.Spec.Mode == team.ModeDelegate {
		return "", err
	}
	return cmp.Or(m.Spec.Mode, team.ModeDefault), nil
}

// ask queues the request; a finished plan is a request for plan approval.
func (r *run) ask(ctx context.Context, t *tool.Team, c tool.Caller) (ledger.Approval, error) {
	id := idHook + team.NewUUID()
	if plan := r.hook.Plan(); plan != "" {
		return t.AskPlan(ctx, c, tool.PlanIn{Content: plan, Path: r.hook.PlanPath(), RequestID: id})
	}
	return t.AskPermission(ctx, c, tool.PermissionIn{
		ToolName: r.hook.Tool, ToolUseID: r.hook.ToolUseID, Input: r.hook.Input, Suggestions: r.hook.Suggestions,
		Description: r.hook.What(), Questions: r.hook.Questions(), RequestID: id,
	})
}

// noteAnswer settles the mail that contains an answer which the agent has got from its hook.
func (r *run) noteAnswer(ctx context.Context, t *tool.Team, c tool.Caller, a ledger.Approval) error {
	waiting, err := t.Ledger.Waiting(ctx, c.Session)
	if err != nil {
		return err
	}
	var marks []ledger.DeliveryMark
	for _, o := range waiting {
		if o.Message.RequestID == a.RequestID {
			marks = append(marks, ledger.DeliveryMark{MessageID: o.Message.ID, Recipient: o.Delivery.Recipient, State: team.Accepted,
				Evidence: "it was the answer of its hook " + r.Event})
		}
	}
	_, err = t.Ledger.MarkMany(ctx, marks)
	return err
}

// settleAsks withdraws requests that were answered at the agent's own dialog: the tool has run, or
// the turn is over.
func (r *run) settleAsks(ctx context.Context, t *tool.Team, c tool.Caller) error {
	answered, err := r.answered(ctx, t, c)
	for _, a := range answered {
		err = firstError(err, elsewhere(ctx, t, a))
	}
	return err
}

// answered returns the requests that settleAsks withdraws.
func (r *run) answered(ctx context.Context, t *tool.Team, c tool.Caller) (out []ledger.Approval, err error) {
	over := adapter.EndsAsks(r.CLI, r.Event)
	if !over && !adapter.EndsTool(r.CLI, r.Event) {
		return nil, nil
	}
	pending, err := t.Ledger.Approvals(ctx, ledger.ApprovalFilter{State: ledger.ApprovalPending, Session: c.Session})
	if err != nil {
		return nil, err
	}
	for _, a := range pending {
		if (strings.HasPrefix(a.RequestID, idHook) || strings.HasPrefix(a.RequestID, idDialog)) && (over || r.about(a)) {
			out = append(out, a)
		}
	}
	return out, nil
}

// about reports whether the tool that has run is the one that was requested.
func (r *run) about(a ledger.Approval) bool {
	var asked struct {
		Name        string          `json:"tool_name"` // from a hook
		Input       json.RawMessage `json:"input"`
		Tool        string          `json:"tool"` // from a dialog
		Description string          `json:"description"`
		Plan        string          `json:"plan_content"`
	}
	switch {
	case json.Unmarshal(a.Payload, &asked) != nil:
		return false
	case asked.Plan != "":
		return asked.Plan == r.hook.Plan()
	case asked.Name != "":
		return asked.Name == r.hook.Tool && bytes.Equal(compact(asked.Input), compact(r.hook.Input))
	}
	return asked.Description != "" && asked.Description == r.hook.What()
}

// compact normalises JSON for comparison: no blanks, sorted keys.
func compact(raw json.RawMessage) []byte {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

// elsewhere withdraws a request that was answered at the agent itself.
func elsewhere(ctx context.Context, t *tool.Team, a ledger.Approval) error {
	return t.Ledger.Withdraw(ctx, a.ID, a.Name, "answered at its own screen")
}
