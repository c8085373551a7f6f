package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

const (
	evidence   = "worker read"
	mailRetry  = time.Second
	maxOnPaper = 4000 // characters of one message on the screen
)

// letter is an unread entry with the ledger's data about it.
type letter struct {
	entry inbox.Entry
	msg   ledger.Message // authoritative for sender, kind and text, if known
	known bool           // the ledger has it as a message to us
	done  bool           // already accepted: handled, but not marked read
	// commands says that its sender may end the worker or steer it, for a kind that asks for that.
	commands bool
}

// rank returns the order of handling: shutdown, the lead, the peers, unknown senders.
func (l letter) rank() int {
	if !l.known {
		return 3
	}
	return l.msg.Rank()
}

// readMail handles unread mail and marks it read; true means that a shutdown was approved.
func (w *worker) readMail(ctx context.Context) (stop bool) {
	w.settleOwed(ctx)
	letters, ok := w.letters(ctx)
	if !ok {
		return false
	}
	for _, l := range letters {
		if ctx.Err() != nil || stop {
			break // the rest stays unread for the next life
		}
		if !l.done {
			stop = w.handle(ctx, l)
			w.receipt(ctx, l, evidence)
		}
		w.handled[l.entry.Key()] = true
	}
	w.markRead(ctx)
	return stop
}

// letters returns the unread, unhandled mail, most urgent first; false if the mailbox cannot be
// read now.
func (w *worker) letters(ctx context.Context) ([]letter, bool) {
	entries, err := w.env.Box.Unread(ctx)
	var damaged *inbox.CorruptError
	if errors.As(err, &damaged) {
		w.out.line("mailbox: %v; reading from the ledger", err)
		entries, err = w.rebuilt(ctx)
		w.again = mailRetry // for entries that the ledger does not have
	}
	if err != nil {
		w.mailTrouble(ctx, err)
		return nil, false
	}
	w.mailErr = ""
	letters := make([]letter, 0, len(entries))
	for _, e := range entries {
		if w.handled[e.Key()] {
			continue
		}
		l, err := w.open(ctx, e)
		if err != nil {
			w.mailTrouble(ctx, err)
			return nil, false
		}
		letters = append(letters, l)
	}
	slices.SortStableFunc(letters, func(a, b letter) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.msg.Seq, b.msg.Seq))
	})
	return letters, true
}

// markRead marks mail that was handled and whose receipt is written: without a receipt its sender
// would never be notified. Mail that cannot be marked now is not handled again.
func (w *worker) markRead(ctx context.Context) {
	if len(w.owed) > 0 {
		w.again = mailRetry
	}
	if len(w.handled) == len(w.owed) {
		return
	}
	done := func(key string) bool { _, owed := w.owed[key]; return w.handled[key] && !owed }
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	_, err := w.env.Box.Consume(c, 0, func(e inbox.Entry) bool { return done(e.Key()) })
	if err != nil {
		w.mailTrouble(ctx, err)
		return
	}
	maps.DeleteFunc(w.handled, func(key string, _ bool) bool { return done(key) })
}

// mailTrouble reports a new mailbox error once and retries soon.
func (w *worker) mailTrouble(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if s := err.Error(); s != w.mailErr {
		w.mailErr = s
		w.out.line("mailbox: %v", err)
	}
	w.again = mailRetry
}

// open looks an entry up. A message that the ledger does not have, or has for another member, is
// unknown: any program can write a mailbox file.
func (w *worker) open(ctx context.Context, e inbox.Entry) (letter, error) {
	l := letter{entry: e}
	if e.ID == "" {
		return l, nil
	}
	msg, err := w.env.Ledger.Message(ctx, e.ID)
	if team.IsCode(err, team.CodeNotFound) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	ds, err := w.env.Ledger.Deliveries(ctx, e.ID)
	if err != nil {
		return l, err
	}
	for _, d := range ds {
		// The session must match too: mail for an earlier member of this name is not ours.
		if strings.EqualFold(d.Recipient, w.id.Name) && (w.id.Session == "" || d.Session == w.id.Session) {
			l.msg, l.known, l.done = msg, true, accepted(d.State)
		}
	}
	if l.known && !l.done && slices.Contains(commanding, l.msg.Kind) {
		l.commands, err = w.mayCommand(ctx, l.msg.From)
	}
	return l, err
}

// commanding are the kinds of mail by which a worker is ended or steered.
var commanding = []team.Kind{team.KindShutdownRequest, team.KindMessage, team.KindTaskRequest}

// accepted reports whether the message was handled before.
func accepted(s team.DeliveryState) bool {
	switch s {
	case team.Accepted, team.Read, team.Answered, team.Dropped:
		return true
	case team.Posted, team.Mailed, team.Held, team.Injected, team.Unknown:
	}
	return false
}

// rebuilt returns the unhandled mail that the ledger lists for the mailbox. A damaged file is
// repaired by its next user, but may have lost entries.
func (w *worker) rebuilt(ctx context.Context) ([]inbox.Entry, error) {
	all, err := w.env.Ledger.Mailbox(ctx, w.id.Session, 0)
	if err != nil {
		return nil, err
	}
	var out []inbox.Entry
	for _, o := range all {
		if o.Delivery.State == team.Mailed || o.Delivery.State.HandedOver() {
			out = append(out, inbox.Entry{ID: o.Message.ID, From: o.Message.From, Text: o.Message.Text})
		}
	}
	return out, nil
}

// receipt records that the message was accepted. A receipt that cannot be written now is owed: the
// message stays unread in its mailbox until then.
func (w *worker) receipt(ctx context.Context, l letter, evidence string) {
	if !l.known {
		return
	}
	m := ledger.DeliveryMark{MessageID: l.msg.ID, Recipient: w.id.Name, State: team.Accepted, Evidence: evidence}
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	err := w.few(c, func() error {
		_, err := w.env.Ledger.Mark(c, m)
		return err
	})
	if err != nil && !lost(err) {
		w.out.line("receipt for message %s not written yet: %v", l.msg.ID, err)
		w.owed[l.entry.Key()] = m
	}
}

// settleOwed writes owed receipts.
func (w *worker) settleOwed(ctx context.Context) {
	if len(w.owed) == 0 || ctx.Err() != nil {
		return
	}
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	for key, m := range w.owed {
		if _, err := w.env.Ledger.Mark(c, m); err != nil && !lost(err) {
			return // the others would fail as well
		}
		delete(w.owed, key)
	}
}

// handle acts on one message; true ends the worker.
func (w *worker) handle(ctx context.Context, l letter) (stop bool) {
	if !l.known {
		w.unverified(l.entry)
		return false
	}
	switch m := l.msg; m.Kind {
	case team.KindShutdownRequest:
		return w.shutdown(ctx, l)
	case team.KindTaskRequest:
		w.taskRequest(ctx, m)
	case team.KindTaskAssignment:
		// The ledger offers us our assigned tasks first.
		w.out.line("%s assigned a task: %s", m.From, cut(oneLine(m.Summary), maxSummary))
		w.assigned(ctx, m)
	case team.KindMessage, team.KindBroadcast, team.KindInfo, team.KindError, team.KindTaskResponse:
		w.show(m.From, string(m.Kind), m.Text)
	default:
		w.out.line("%s from %s: nothing for a worker to do", m.Kind, m.From)
	}
	return false
}

func (w *worker) show(from, kind, text string) {
	body := strings.TrimRight(plain.Text(text), "\n ")
	w.out.line("✉ %s from %s: %s", kind, from, cut(strings.ReplaceAll(body, "\n", "\n  "), maxOnPaper))
}

// unverified shows an entry without a message in the ledger, and does nothing about it.
func (w *worker) unverified(e inbox.Entry) {
	if f, ok := e.Frame(); ok {
		w.out.line("ignored a %s that claims to be from %s: the ledger does not have it", f.Kind(), cut(oneLine(e.From), 80))
		return
	}
	w.show(cut(oneLine(e.From), 80)+" (unverified)", "message", e.Text)
}

// mayCommand reports whether a sender may end the worker. An error says nothing of the sender: its
// mail must wait, and not be refused.
func (w *worker) mayCommand(ctx context.Context, from string) (bool, error) {
	if from == team.LeadName {
		return true, nil
	}
	m, err := w.env.Ledger.Member(ctx, from)
	if team.IsCode(err, team.CodeNotFound) { // nobody has the name any more
		return false, nil
	}
	return err == nil && (m.Role == team.RoleLeader || m.Role == team.RoleOperator), err
}

// shutdown answers a request. Mail is read between tasks, so no task is running.
func (w *worker) shutdown(ctx context.Context, l letter) bool {
	m := l.msg
	id, reason := m.RequestID, ""
	if f, ok := inbox.Parse(m.Text); ok {
		if r, ok := f.(inbox.ShutdownRequest); ok {
			id, reason = cmp.Or(id, r.RequestID), r.Reason
		}
	}
	if !l.commands {
		w.out.line("ignored a shutdown request from %s, which is neither lead nor operator", m.From)
		w.post(ctx, "shutdown_rejected", ledger.NewMessage{
			Kind: team.KindShutdownRejected, To: m.From, Parent: m.ID, RequestID: id, IdemKey: "shutdown:" + m.ID,
			Text: w.frame(inbox.ShutdownRejected{
				RequestID: id, From: w.id.Name, Reason: "only the lead or an operator may ask for it", Timestamp: w.timestamp(),
			}),
			Summary: "shutdown rejected",
		})
		return false
	}
	if reason != "" {
		reason = " (" + oneLine(reason) + ")"
	}
	w.out.line("shutdown requested by %s%s: approved", m.From, reason)
	pane, backend := w.place(ctx)
	w.post(ctx, "shutdown_approved", ledger.NewMessage{
		Kind: team.KindShutdownApproved, To: m.From, Parent: m.ID, RequestID: id, IdemKey: "shutdown:" + m.ID,
		Text: w.frame(inbox.ShutdownApproved{
			RequestID: id, From: w.id.Name, Timestamp: w.timestamp(), PaneID: pane, BackendType: backend,
		}),
		Summary: "shutdown approved",
	})
	return true
}

// place returns our pane and backend according to the roster, empty if unknown.
func (w *worker) place(ctx context.Context) (pane, backend string) {
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	m, err := w.env.Ledger.MemberBySession(c, w.id.Session)
	if err != nil {
		return "", ""
	}
	return m.PaneID, m.Spec.Backend
}

var taskNamed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)(?:\btask\s*#?\s*|#)(\d+)\b|^\s*(\d+)\s*$`) })

// requestedTask returns the id of the task named by a request, or "".
func requestedTask(m ledger.Message) string {
	var p struct {
		TaskID  json.RawMessage `json:"taskId"`
		TaskID2 json.RawMessage `json:"task_id"`
		Task    json.RawMessage `json:"task"`
	}
	if json.Unmarshal(m.Payload, &p) == nil {
		for _, raw := range []json.RawMessage{p.TaskID, p.TaskID2, p.Task} {
			if id := strings.Trim(string(raw), `" `); id != "" && id != "null" {
				return id
			}
		}
	}
	if g := taskNamed().FindStringSubmatch(m.Text); g != nil {
		return cmp.Or(g[1], g[2])
	}
	return ""
}

// taskRequest claims the requested task if possible, and answers.
func (w *worker) taskRequest(ctx context.Context, m ledger.Message) {
	w.show(m.From, string(m.Kind), m.Text)
	text := "I run tasks of the ledger that have metadata.run, the oldest ready one of the highest priority first. " +
		"Add one with: teamctl task add SUBJECT --run COMMAND"
	if id := requestedTask(m); id != "" {
		text = w.claimRequested(ctx, id)
	}
	w.post(ctx, "task_response", ledger.NewMessage{
		Kind: team.KindTaskResponse, To: m.From, Parent: m.ID, Hop: m.Hop, IdemKey: "reply:" + m.ID,
		Text: text, Summary: cut(firstLine(text), maxSummary),
	})
}

// assigned notifies the sender of an assigned task without a command: it is not claimed, and would
// otherwise wait for ever.
func (w *worker) assigned(ctx context.Context, m ledger.Message) {
	f, _ := inbox.Parse(m.Text)
	a, ok := f.(inbox.TaskAssignment)
	if !ok {
		return
	}
	why := w.noCommand(ctx, a.TaskID)
	if why == "" {
		return
	}
	w.out.line("%s", why)
	w.post(ctx, "the answer", ledger.NewMessage{
		Kind: team.KindError, To: m.From, Parent: m.ID, Hop: m.Hop, IdemKey: "reply:" + m.ID, Text: why, Summary: cut(why, maxSummary),
	})
}

// noCommand returns a message that a task has no command, and what to do about it; "" if it has
// one, or if that is unknown.
func (w *worker) noCommand(ctx context.Context, id string) string {
	var t ledger.Task
	err := w.few(ctx, func() (err error) {
		t, err = w.env.Ledger.Task(ctx, id)
		return err
	})
	if err != nil || t.Status != team.TaskPending {
		return ""
	}
	if _, err := readOrders(t); !errors.Is(err, errNoRun) {
		return ""
	}
	return "task " + id + " waits: it has no command (metadata.run), and I run commands only. Give it one: " +
		"teamctl task edit " + id + " --meta run=COMMAND, or assign it to another member"
}

func (w *worker) claimRequested(ctx context.Context, id string) string {
	if why := w.noCommand(ctx, id); why != "" {
		return why
	}
	if w.next != nil {
		return "task " + id + " stays in the ledger: I do task " + w.next.ID + " first"
	}
	t, err := w.claim(ctx, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return "task " + id + " stays in the ledger: I am being stopped"
	case takesNone(err):
		return "task " + id + " stays in the ledger: " + err.Error()
	case err != nil:
		var coded *team.Error
		hint := ""
		if errors.As(err, &coded) && coded.Hint != "" {
			hint = " (" + coded.Hint + ")"
		}
		return "task " + id + " is not mine to take: " + err.Error() + hint
	case t == nil:
		return "task " + id + " is not ready"
	}
	w.next = t
	return "task " + t.ID + " (" + oneLine(t.Subject) + ") is claimed, I begin now"
}
