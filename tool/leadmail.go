package tool

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TakeAsked puts on the queue what members have asked for by writing into the lead's
// mailbox themselves, as programs do that know the files and not teamctl: permission
// and plan requests, in the shapes of their protocol. Asking gives no power, so the
// entry's word for who asks is enough, if that is a member; the answer goes to the
// member of that name. What is on the queue already stays as it is, unless the lead
// has answered it in its own way. The error joins what was refused.
//
// It reads what has come since the last call of any process. What was refused is tried
// again.
func (t *Team) TakeAsked(ctx context.Context) error {
	a := askedTaker{Team: t}
	if err := a.open(); err != nil {
		return err
	}
	err := a.take(ctx, func(string) bool { return true })
	a.save(ctx)
	return err
}

// AskedTaker returns a TakeAsked for one who calls it after every change of the lead's
// mailbox: it looks at the mailboxes of those who wait only where they have changed.
func (t *Team) AskedTaker() func(context.Context) error {
	a := askedTaker{Team: t}
	seen := map[string]fs.FileInfo{} // the mailboxes of those who wait for an answer
	return func(ctx context.Context) error {
		if err := a.open(); err != nil {
			return err
		}
		err := a.take(ctx, func(path string) bool {
			now, err := os.Stat(path)
			was := seen[path]
			seen[path] = now
			return err != nil || was == nil || !os.SameFile(was, now) || was.Size() != now.Size() || !was.ModTime().Equal(now.ModTime())
		})
		if err != nil && !refusal(err) { // it may work the next time
			clear(seen)
		}
		if a.tail.BytesRead()-a.saved >= askedSaved {
			a.save(ctx)
		}
		return err
	}
}

// askedSaved is how many bytes of the lead's mailbox a taker that stays reads before it
// notes how far it has come: what others have to read again, at most.
const askedSaved = 256 << 10

// askedTaker takes up what is asked in the lead's mailbox. How far the mailbox was looked
// through is noted in a file, for the next process.
type askedTaker struct {
	*Team
	tail  *inbox.Tail
	noted inbox.TailMark // in the file
	saved int64          // how much had been read when that was noted
	over  bool           // more was refused than the tail remembers: it is not noted
}

// askedMark is that file. It is about one ledger: what is not in another one, or was not
// in an older copy that was put back, has to be taken up again.
type askedMark struct {
	Ledger string         `json:"ledger"`
	Event  int64          `json:"event"` // the newest at that time
	Box    inbox.TailMark `json:"mailbox"`
}

// askedOf names the ledger file that a mark is about.
func (t *Team) askedOf() string {
	fi, err := os.Stat(t.Layout.Ledger())
	if err != nil {
		return ""
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return strconv.FormatUint(uint64(st.Dev), 16) + ":" + strconv.FormatUint(st.Ino, 16) // the types differ between systems
}

// open begins where the last process ended, or with all that is unread.
func (a *askedTaker) open() error {
	if a.tail != nil {
		return nil
	}
	box, err := a.mailer(Caller{Name: team.LeadName}).Box(team.LeadName)
	if err != nil {
		return err
	}
	a.noted = a.mark()
	a.tail = box.Tail(a.noted)
	return nil
}

func (a *askedTaker) mark() inbox.TailMark {
	var m askedMark
	data, err := os.ReadFile(a.Layout.LeadAsked())
	if err != nil || json.Unmarshal(data, &m) != nil || m.Ledger == "" || m.Ledger != a.askedOf() {
		return inbox.TailMark{}
	}
	if last, err := a.Ledger.LastEvent(context.Background()); err != nil || last < m.Event {
		return inbox.TailMark{}
	}
	return m.Box
}

// save notes how far the mailbox was looked through. Where that cannot be written, the
// next process reads more.
func (a *askedTaker) save(ctx context.Context) {
	m := askedMark{Ledger: a.askedOf(), Box: a.tail.Mark()}
	if a.over || m.Ledger == "" || m.Box.Ino == 0 || a.Elsewhere != nil || reflect.DeepEqual(m.Box, a.noted) {
		return
	}
	var err error
	if m.Event, err = a.Ledger.LastEvent(ctx); err != nil {
		return
	}
	data, err := json.Marshal(m)
	if err == nil && atomicfile.Write(a.Layout.LeadAsked(), data, 0o600, false) == nil {
		a.noted, a.saved = m.Box, a.tail.BytesRead()
	}
}

// take takes up what the unread entries ask for, and ends the requests that were answered
// in the mailboxes for which look is true.
func (a *askedTaker) take(ctx context.Context, look func(path string) bool) error {
	entries, err := a.tail.Unread(ctx)
	var damaged *inbox.CorruptError
	if errors.As(err, &damaged) {
		return nil // repaired: the supervisor puts back what it lacks
	}
	errs := []error{err}
	refused, again := map[string]bool{}, err != nil
	for _, e := range entries {
		if !mayAsk(e.Text) {
			continue
		}
		if f, ok := e.Frame(); ok && (f.Kind() == team.KindPermissionRequest || f.Kind() == team.KindPlanApprovalRequest) {
			err := a.takeAsked(ctx, e, f)
			refused[e.Key()], again = err != nil, again || err != nil && !refusal(err)
			errs = append(errs, err)
		}
	}
	a.over = !a.tail.Keep(func(e inbox.Entry) bool { return refused[e.Key()] })
	pending, err := a.Ledger.Approvals(ctx, ledger.ApprovalFilter{State: ledger.ApprovalPending})
	errs = append(errs, err)
	changed := map[string]bool{}
	for _, p := range pending {
		if _, asked := changed[p.Name]; !asked {
			box, err := a.mailer(Caller{}).Box(p.Name)
			changed[p.Name] = err != nil || look(box.Path())
		}
		if changed[p.Name] {
			errs = append(errs, a.answeredElsewhere(ctx, p))
		}
	}
	if again { // it may work the next time
		a.tail.Again()
	}
	return joinErrors(errs)
}

// mayAsk reports whether a text has the name of a request in it: most mail has not, and to
// parse it costs more than to read it. A name that is written with escapes is one too.
func mayAsk(text string) bool {
	return strings.Contains(text, string(team.KindPermissionRequest)) || strings.Contains(text, string(team.KindPlanApprovalRequest)) ||
		strings.Contains(text, `\u`)
}

func (t *Team) takeAsked(ctx context.Context, e inbox.Entry, f inbox.Frame) error {
	_, err := t.Ledger.Approval(ctx, f.Correlation())
	if err == nil || !team.IsCode(err, team.CodeNotFound) {
		return err
	}
	m, err := t.Ledger.Member(ctx, e.From)
	if team.IsCode(err, team.CodeNotFound) || err == nil && m.Name == team.LeadName {
		return team.Errorf(team.CodeDenied, "a %s in the lead's mailbox is from %q, who is no member", f.Kind(), e.From).WithReason("forged")
	}
	if err != nil {
		return err
	}
	in, says, payload := asked(f)
	if name, _, _ := strings.Cut(says, "@"); !strings.EqualFold(name, m.Name) {
		return team.Errorf(team.CodeDenied, "a %s in the lead's mailbox is from %s and speaks of %q", f.Kind(), m.Name, says).WithReason("forged")
	}
	c := Caller{Name: m.Name, Session: m.SessionKey, Role: m.Role}
	if err := t.may(ctx, c, OpAsk); err != nil {
		return err
	}
	if in.Kind == ledger.ApprovePlan { // who asks in a file sees no error and would wait for ever
		if in.Refusal, err = secondPlan(in.RequestID); err != nil {
			return err
		}
	}
	_, err = t.ask(ctx, c, in, payload, nil)
	return err
}

// secondPlan tells a member that its plan is refused while another one waits.
func secondPlan(request string) (*ledger.NewMessage, error) {
	f := inbox.PlanApprovalResponse{RequestID: request, Timestamp: inbox.Timestamp(time.Now()),
		Feedback: "another plan of yours waits for approval: one at a time"}
	text, err := inbox.Encode(f)
	return &ledger.NewMessage{Kind: f.Kind(), From: team.LeadName, RequestID: request, Text: text, Summary: "plan rejected"}, err
}

// answeredElsewhere ends a request that was taken up from the lead's mailbox when
// the lead, a program that knows nothing of the queue, has written its answer into the
// asker's mailbox itself. Asker and lead are done with each other then, whoever wrote
// it. It gives nobody anything: no mode changes, and what teamctl was asked by other
// ways stays pending.
func (t *Team) answeredElsewhere(ctx context.Context, a ledger.Approval) error {
	if a.State != ledger.ApprovalPending || a.Message != "" || a.Kind != ledger.ApprovePermission && a.Kind != ledger.ApprovePlan {
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
		return nil // repaired: the supervisor puts back what it lacks
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

// asked is a request as the queue has it, and whom it names as its sender.
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

// refusal reports that something was not taken up for what it says, and all else was.
func refusal(err error) bool {
	for _, code := range []team.Code{team.CodeDenied, team.CodeInvalid, team.CodeConflict, team.CodeLimit} {
		if team.IsCode(err, code) {
			return true
		}
	}
	return false
}
