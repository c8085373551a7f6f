package tool

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
)

// TakeAsked queues requests that members have written to the lead's mailbox themselves, as
// programs do that know the files but not teamctl: permission and plan requests, in the form of
// their protocol. A request grants nothing, so the sender named in the entry is accepted if it is
// a member; the answer goes to the member of that name. A request that is already queued stays as
// it is, unless the lead has answered it in its own way. The error joins all refusals.
//
// It reads what has arrived since the last call in any process, and retries what was refused.
func (t *Team) TakeAsked(ctx context.Context) error {
	r := &mail.LeadReader{Mailer: t.mailer(Caller{Name: team.LeadName})}
	err := t.take(ctx, r, func(string) bool { return true })
	if t.Elsewhere == nil {
		r.Note(ctx)
	}
	return err
}

// AskedTaker returns a TakeAsked for a caller that runs it after every change of the lead's
// mailbox: it reads the requesters' mailboxes only if they have changed.
func (t *Team) AskedTaker() func(context.Context) error {
	r := &mail.LeadReader{Mailer: t.mailer(Caller{Name: team.LeadName})}
	seen := map[string]fs.FileInfo{} // mailboxes of members with pending requests
	return func(ctx context.Context) error {
		err := t.take(ctx, r, func(path string) bool {
			now, err := os.Stat(path)
			was := seen[path]
			seen[path] = now
			return err != nil || was == nil || !os.SameFile(was, now) || was.Size() != now.Size() || !was.ModTime().Equal(now.ModTime())
		})
		if err != nil && !refusal(err) { // it may succeed the next time
			clear(seen)
		}
		if t.Elsewhere == nil {
			r.NoteSeldom(ctx)
		}
		return err
	}
}

// take queues the requests in unread entries, and ends the requests that were answered in the
// mailboxes for which look is true.
func (t *Team) take(ctx context.Context, r *mail.LeadReader, look func(path string) bool) error {
	var errs []error
	err := r.Read(ctx, func(e inbox.Entry, f inbox.Frame) mail.Taken {
		err := t.takeAsked(ctx, e, f)
		errs = append(errs, err)
		switch {
		case err == nil:
			return mail.Done
		case refusal(err):
			return mail.Refused
		default:
			return mail.Failed
		}
	})
	errs = append(errs, err)
	pending, err := t.Ledger.Approvals(ctx, ledger.ApprovalFilter{State: ledger.ApprovalPending})
	errs = append(errs, err)
	changed := map[string]bool{}
	for _, p := range pending {
		if _, asked := changed[p.Name]; !asked {
			box, err := t.mailer(Caller{}).Box(p.Name)
			changed[p.Name] = err != nil || look(box.Path())
		}
		if changed[p.Name] {
			errs = append(errs, t.answeredElsewhere(ctx, p))
		}
	}
	return joinErrors(errs)
}

func (t *Team) takeAsked(ctx context.Context, e inbox.Entry, f inbox.Frame) error {
	_, err := t.Ledger.Approval(ctx, f.Correlation())
	if err == nil || !team.IsCode(err, team.CodeNotFound) {
		return err
	}
	m, err := t.Ledger.Member(ctx, e.From)
	if team.IsCode(err, team.CodeNotFound) || err == nil && m.Name == team.LeadName {
		return team.Errorf(team.CodeDenied, "a %s in the lead's mailbox is from %q, which is not a member", f.Kind(), e.From).WithReason(team.ReasonForged)
	}
	if err != nil {
		return err
	}
	in, says, payload := asked(f)
	if name, _, _ := strings.Cut(says, "@"); !strings.EqualFold(name, m.Name) {
		return team.Errorf(team.CodeDenied, "a %s in the lead's mailbox is from %s and speaks of %q", f.Kind(), m.Name, says).WithReason(team.ReasonForged)
	}
	c := Caller{Name: m.Name, Session: m.SessionKey, Role: m.Role}
	if err := t.may(ctx, c, OpAsk); err != nil {
		return err
	}
	if in.Kind == ledger.ApprovePlan { // a requester that uses files sees no error and would wait for ever
		if in.Refusal, err = secondPlan(in.RequestID); err != nil {
			return err
		}
	}
	_, err = t.ask(ctx, c, in, payload, nil)
	return err
}

// secondPlan notifies a member that its plan is refused while another one is pending.
func secondPlan(request string) (*ledger.NewMessage, error) {
	f := inbox.PlanApprovalResponse{RequestID: request, Timestamp: inbox.Timestamp(time.Now()),
		Feedback: "another plan of yours waits for approval: one at a time"}
	text, err := inbox.Encode(f)
	return &ledger.NewMessage{Kind: f.Kind(), From: team.LeadName, RequestID: request, Text: text, Summary: "plan rejected"}, err
}

// answeredElsewhere ends a request taken from the lead's mailbox when the lead, a program that
// does not know the queue, has written its answer to the requester's mailbox. The two have settled
// it then, whoever wrote the answer. This grants nothing: no mode changes, and requests made to
// teamctl in other ways stay pending.
func (t *Team) answeredElsewhere(ctx context.Context, a ledger.Approval) error {
	if a.State != ledger.ApprovalPending || a.Message != "" || a.Name == team.LeadName || a.Kind != ledger.ApprovePermission && a.Kind != ledger.ApprovePlan {
		return nil
	}
	if m, err := t.Ledger.Member(ctx, a.Name); err != nil || m.SessionKey != a.Session {
		return err
	}
	box, err := t.mailer(Caller{}).Box(a.Name)
	if err != nil {
		return err
	}
	entries, err := box.Entries(ctx)
	var damaged *inbox.CorruptError
	if errors.As(err, &damaged) {
		return nil // repaired: the supervisor restores missing entries
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		f, ok := e.Frame()
		if !ok || f.Correlation() != a.RequestID || !strings.EqualFold(e.From, team.LeadName) {
			continue
		}
		var word string
		switch f := f.(type) {
		case inbox.PermissionResponse:
			word = answerWord(f.Approve)
		case inbox.PlanApprovalResponse:
			word = answerWord(f.Approved)
		default:
			continue
		}
		return t.Ledger.Withdraw(ctx, a.ID, team.LeadName, "answered elsewhere: "+a.Name+"'s mailbox says "+word)
	}
	return nil
}

func answerWord(yes bool) string {
	if yes {
		return "approved"
	}
	return "rejected"
}

// asked converts a frame to a request for the queue, and returns its sender's name.
func asked(f inbox.Frame) (in ledger.AskIn, from string, payload any) {
	in = ledger.AskIn{RequestID: f.Correlation()}
	switch f := f.(type) {
	case inbox.PermissionRequest:
		in.Kind, in.Subject = ledger.ApprovePermission, permissionSubject(f.ToolName, f.Description)
		return in, f.AgentID, PermissionIn{ToolName: f.ToolName, ToolUseID: f.ToolUseID, Description: f.Description,
			Input: f.Input, Suggestions: f.Suggestions, RequestID: f.RequestID}
	case inbox.PlanApprovalRequest:
		in.Kind, in.Subject = ledger.ApprovePlan, inbox.Summary("", f.PlanContent)
		if in.Subject == "" { // only the file is named
			in.Subject = inbox.Summary("", "plan "+f.PlanFilePath)
		}
		return in, f.From, PlanIn{Content: f.PlanContent, Path: f.PlanFilePath, RequestID: f.RequestID}
	}
	return in, "", nil
}

func permissionSubject(toolName, description string) string {
	if description == "" {
		return toolName
	}
	return toolName + ": " + inbox.Summary("", description)
}

// refusal reports whether an error only says that requests were refused because of their content.
func refusal(err error) bool {
	for _, code := range []team.Code{team.CodeDenied, team.CodeInvalid, team.CodeConflict, team.CodeLimit} {
		if team.IsCode(err, code) {
			return true
		}
	}
	return false
}
