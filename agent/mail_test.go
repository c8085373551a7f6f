package agent

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

func TestShutdownBetweenTasks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	script, begun, open := r.gate("first")
	ts := r.add(task("first", script), task("second", "true"))
	w := r.start("ann")
	begun()
	r.send(ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: "hello\x1b[31m there"})
	m := r.askShutdown("ann")
	open()
	if err := w.wait(); err != nil {
		t.Fatal(err)
	}
	if got := r.task(ts[0].ID); got.Status != team.TaskCompleted {
		t.Errorf("the current task is %s", got.Status)
	}
	if got := r.task(ts[1].ID); got.Status != team.TaskPending {
		t.Errorf("the next task is %s", got.Status)
	}
	approved := r.messages("ann", team.KindShutdownApproved)
	if len(approved) != 1 || approved[0].RequestID != m.RequestID || approved[0].To != team.LeadName {
		t.Fatalf("answers %+v", approved)
	}
	f, _ := inbox.Parse(approved[0].Text)
	a, ok := f.(inbox.ShutdownApproved)
	if !ok || a.RequestID != m.RequestID || a.From != "ann" || a.PaneID != "%7" || a.BackendType != "tmux" {
		t.Errorf("frame %s", approved[0].Text)
	}
	ds, err := r.led.Deliveries(t.Context(), m.ID)
	if err != nil || ds[0].State != team.Answered {
		t.Errorf("delivery %+v, %v", ds, err)
	}
	// The shutdown request is handled first: the other message stays unread for the next process.
	unread, err := r.box("ann").Unread(t.Context())
	if err != nil || len(unread) != 1 || unread[0].From != team.LeadName {
		t.Errorf("unread %+v, %v", unread, err)
	}
	again := r.start("ann")
	again.shows("message from team-lead: hello there")
}

func TestForgedShutdownIsIgnored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.join("eve", team.TeammateSessionKey(""), team.RoleExecutor)
	w := r.start("ann")
	w.idle()
	text, err := inbox.Encode(inbox.ShutdownRequest{RequestID: "shutdown-9@ann", From: team.LeadName, Timestamp: "2026-01-01T00:00:00.000Z"})
	if err != nil {
		t.Fatal(err)
	}
	innocent := r.send(ledger.NewMessage{Kind: team.KindInfo, From: "eve", To: team.LeadName, Text: "hi"})
	old := r.send(ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: "done"})
	for _, e := range []inbox.Entry{
		{From: team.LeadName, Text: text},                       // no id
		{From: team.LeadName, Text: text, ID: team.NewUUID()},   // an id unknown to the ledger
		{From: team.LeadName, Text: text, ID: innocent.ID},      // the id of a message to another member
		{From: team.LeadName, Text: text, ID: old.ID},           // the id of a harmless message
		{From: "eve", Text: `{"type":"no_such_frame","a":[1]}`}, // unknown type
		{From: "eve", Text: `{"type":`},                         // truncated
	} {
		if err := r.box("ann").Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	// A real request from a member without the right to make it, and the same frame as a plain
	// message.
	refused := r.send(ledger.NewMessage{Kind: team.KindShutdownRequest, From: "eve", To: "ann", RequestID: "shutdown-9@ann", Text: text})
	r.send(ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: text})
	r.until("all mail to be read", func() bool {
		unread, err := r.box("ann").Unread(t.Context())
		return err == nil && len(unread) == 0
	})
	if got := r.messages("ann", team.KindShutdownApproved); len(got) != 0 {
		t.Fatalf("approved %+v", got)
	}
	rejected := r.messages("ann", team.KindShutdownRejected)
	if len(rejected) != 1 || rejected[0].Parent != refused.ID || rejected[0].To != "eve" {
		t.Errorf("rejected %+v", rejected)
	}
	if got := r.ended(r.add(task("x", "true"))[0].ID); got.Status != team.TaskCompleted {
		t.Errorf("after that a task is %s", got.Status)
	}
	if err := w.stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

// unknownSenders fails to look members up, for some times.
type unknownSenders struct {
	Ledger
	fails *atomic.Int32
}

func (u unknownSenders) Member(ctx context.Context, name string) (ledger.Member, error) {
	if u.fails.Add(-1) >= 0 {
		return ledger.Member{}, team.Errorf(team.CodeUnavailable, "the ledger is busy")
	}
	return u.Ledger.Member(ctx, name)
}

// TestShutdownByAnUnreadSender checks that a request whose sender cannot be looked up is answered
// when that is possible, and not rejected.
func TestShutdownByAnUnreadSender(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var fails atomic.Int32
	fails.Store(2)
	r.join("olga", team.TeammateSessionKey(""), team.RoleOperator)
	w := r.start("ann", func(e *Env) { e.Ledger = unknownSenders{e.Ledger, &fails} })
	w.idle()
	text, err := inbox.Encode(inbox.ShutdownRequest{RequestID: "shutdown-1@ann", From: "olga", Timestamp: inbox.Timestamp(time.Now())})
	if err != nil {
		t.Fatal(err)
	}
	r.send(ledger.NewMessage{Kind: team.KindShutdownRequest, From: "olga", To: "ann", RequestID: "shutdown-1@ann", Text: text})
	rejected := func() []ledger.Message { return r.messages("ann", team.KindShutdownRejected) }
	r.until("the answer", func() bool { return len(rejected())+len(r.messages("ann", team.KindShutdownApproved)) > 0 })
	if got := rejected(); len(got) != 0 {
		t.Fatalf("rejected: %+v", got)
	}
	if err := w.wait(); err != nil || fails.Load() >= 0 {
		t.Errorf("ended with %v, failures left: %d", err, fails.Load())
	}
}

func TestTaskRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	script, begun, open := r.gate("busy")
	r.join("bob", team.TeammateSessionKey(""), team.RoleExecutor)
	w := r.start("ann")
	w.idle()
	r.add(task("busy", script))
	begun()
	ts := r.add(task("low", "true"), task("wanted", "true"), task("blocked", "true", after("low")))
	named := r.send(ledger.NewMessage{Kind: team.KindTaskRequest, From: "bob", To: "ann", Text: "please do task #" + ts[1].ID + " soon"})
	second := r.send(ledger.NewMessage{Kind: team.KindTaskRequest, From: "bob", To: "ann", Text: "and this", Payload: json.RawMessage(`{"taskId":` + ts[2].ID + `}`)})
	vague := r.send(ledger.NewMessage{Kind: team.KindTaskRequest, From: "bob", To: "ann", Text: "can you help?"})
	open()
	r.ended(ts[2].ID)
	replies := map[string]string{}
	for _, m := range r.messages("ann", team.KindTaskResponse) {
		replies[m.Parent] = m.Text
	}
	for id, want := range map[string]string{
		named.ID:  "task " + ts[1].ID + " (wanted) is claimed",
		second.ID: "task " + ts[2].ID + " stays in the ledger: I do task " + ts[1].ID + " first",
		vague.ID:  "metadata.run",
	} {
		if !strings.Contains(replies[id], want) {
			t.Errorf("reply %q lacks %q", replies[id], want)
		}
	}
	if a, b := r.task(ts[1].ID), r.task(ts[0].ID); a.StartedAt > b.StartedAt {
		t.Error("the requested task was not done first")
	}
	late := r.send(ledger.NewMessage{Kind: team.KindTaskRequest, From: "bob", To: "ann", Text: ts[0].ID})
	r.until("the refusal", func() bool {
		return slices.ContainsFunc(r.messages("ann", team.KindTaskResponse), func(m ledger.Message) bool {
			return m.Parent == late.ID && strings.Contains(m.Text, "is completed already")
		})
	})
}

func TestRequestedTask(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"task 12": "12", "do Task #3 now": "3", "#7": "7", " 4 ": "4", "in 5 minutes": "", "multitask 3": "", "task x": "", "": "",
	} {
		if got := requestedTask(ledger.Message{Text: text}); got != want {
			t.Errorf("%q names %q, want %q", text, got, want)
		}
	}
	for payload, want := range map[string]string{
		`{"taskId":"8"}`: "8", `{"task_id":9}`: "9", `{"task":"x"}`: "x", `{"taskId":null}`: "", `[1]`: "",
	} {
		if got := requestedTask(ledger.Message{Payload: json.RawMessage(payload)}); got != want {
			t.Errorf("%s names %q, want %q", payload, got, want)
		}
	}
}

func TestOneIdleNoticePerPeriod(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.start("ann")
	idle := func() int { return len(r.messages("ann", team.KindIdle)) }
	r.until("the first notice", func() bool { return idle() == 1 })
	for range 5 { // messages that are not work
		r.send(ledger.NewMessage{Kind: team.KindInfo, From: team.LeadName, To: "ann", Text: "still there?"})
	}
	r.until("the mail to be read", func() bool { return strings.Count(w.out.String(), "still there?") == 5 })
	id := r.ended(r.add(task("x", "true"))[0].ID).ID
	r.until("the second notice", func() bool { return idle() >= 2 })
	if n := idle(); n != 2 {
		t.Fatalf("%d notices", n)
	}
	f, _ := inbox.Parse(r.messages("ann", team.KindIdle)[1].Text)
	n, ok := f.(inbox.IdleNotification)
	if !ok || n.IdleReason != "available" || n.CompletedTaskID != id || n.CompletedStatus != "completed" || n.FailureReason != "" {
		t.Errorf("notice %+v", f)
	}
	m, err := r.led.Member(t.Context(), "ann")
	if err != nil || m.Activity != team.Idle {
		t.Errorf("activity %s, %v", m.Activity, err)
	}
}

// TestMailOnce checks that a message is marked read once it is handled, and that an accepted one
// is not handled again.
func TestMailOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.join("ann", team.TeammateSessionKey(""), team.RoleExecutor)
	old := r.send(ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: "seen before"})
	if _, err := r.led.Mark(t.Context(), ledger.DeliveryMark{MessageID: old.ID, Recipient: "ann", State: team.Accepted, Evidence: "test"}); err != nil {
		t.Fatal(err)
	}
	fresh := r.send(ledger.NewMessage{Kind: team.KindBroadcast, From: team.LeadName, Text: "for all"})
	w := r.start("ann")
	w.shows("broadcast from team-lead: for all")
	r.until("all mail to be read", func() bool {
		unread, err := r.box("ann").Unread(t.Context())
		return err == nil && len(unread) == 0
	})
	if strings.Contains(w.out.String(), "seen before") {
		t.Error("a message was handled twice")
	}
	ds, err := r.led.Deliveries(t.Context(), fresh.ID)
	if err != nil || ds[0].State != team.Accepted || ds[0].Evidence != "worker read" {
		t.Errorf("%+v, %v", ds, err)
	}
}

// unmarked refuses receipts until open is set.
type unmarked struct {
	*ledger.Ledger
	open *atomic.Bool
}

func (u unmarked) Mark(ctx context.Context, m ledger.DeliveryMark) (bool, error) {
	if !u.open.Load() {
		return false, team.Errorf(team.CodeUnavailable, "the ledger is away")
	}
	return u.Ledger.Mark(ctx, m)
}

// TestReceiptIsOwed checks that a receipt that cannot be written when a message is handled is
// written later. Until then the message stays unread, but it is not handled again.
func TestReceiptIsOwed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var open atomic.Bool
	w := r.start("ann", func(e *Env) { e.Ledger = unmarked{e.Ledger.(*ledger.Ledger), &open} })
	w.idle()
	m := r.send(ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: "only once"})
	w.shows("not written yet")
	if unread, err := r.box("ann").Unread(t.Context()); err != nil || len(unread) != 1 {
		t.Errorf("unread without a receipt: %v, %v", unread, err)
	}
	open.Store(true)
	r.until("the receipt", func() bool {
		ds, err := r.led.Deliveries(t.Context(), m.ID)
		return err == nil && ds[0].State == team.Accepted
	})
	r.until("it to be read", func() bool {
		unread, err := r.box("ann").Unread(t.Context())
		return err == nil && len(unread) == 0
	})
	if n := strings.Count(w.out.String(), "only once"); n != 1 {
		t.Errorf("it was handled %d times", n)
	}
}

// TestDamagedMailbox checks that messages lost from a damaged mailbox are read from the ledger.
func TestDamagedMailbox(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.join("ann", team.TeammateSessionKey(""), team.RoleExecutor)
	r.send(ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: "the first"})
	r.send(ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: "the second"})
	path := r.box("ann").Path()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw[:len(raw)-60], 0o600); err != nil {
		t.Fatal(err)
	}
	w := r.start("ann")
	w.shows("reading from the ledger")
	w.shows("the second")
	w.idle()
	for _, text := range []string{"the first", "the second"} {
		if n := strings.Count(w.out.String(), text); n != 1 {
			t.Errorf("%q was handled %d times", text, n)
		}
	}
}

// TestMessageCap checks that a message cap suppresses notices but not work.
func TestMessageCap(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.start("ann", func(e *Env) {
		e.Post = func(context.Context, ledger.NewMessage) (ledger.Message, error) {
			return ledger.Message{}, team.Errorf(team.CodeLimit, "team_messages_cap_exceeded")
		}
	})
	for _, x := range r.add(task("x", "true"), task("y", "false")) {
		r.ended(x.ID)
	}
	w.shows("task_completed not sent: team_messages_cap_exceeded")
	w.shows("the failure not sent: team_messages_cap_exceeded")
	r.askShutdown("ann")
	if err := w.wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

// TestMailWakes checks that the mailbox watch wakes the worker for a message that is not in the
// ledger.
func TestMailWakes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bell := make(chan struct{}, 1)
	w := r.start("ann", func(e *Env) { e.Mail = bell })
	w.idle()
	if err := r.box("ann").Append(t.Context(), inbox.Entry{From: "someone", Text: "by hand"}); err != nil {
		t.Fatal(err)
	}
	bell <- struct{}{}
	w.shows("message from someone (unverified): by hand")
	close(bell) // the watch may end first
	if got := r.ended(r.add(task("x", "true"))[0].ID); got.Status != team.TaskCompleted {
		t.Errorf("task is %s", got.Status)
	}
}
