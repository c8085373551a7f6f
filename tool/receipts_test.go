package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
)

func (r talkRig) say(c Caller, to, text string) Sent {
	r.Helper()
	sent, err := r.Send(r.Context(), c, SendIn{Recipient: to, Content: text})
	if err != nil {
		r.Fatal(err)
	}
	return sent
}

func TestReceipts(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	sent := r.say(Person(), "a@demo", "hello there, this is a message of more than ten words, is it")
	show := func() MessageInfo {
		t.Helper()
		m, err := r.MessageShow(ctx, sent.MessageID[:8])
		if err != nil || len(m.Deliveries) != 1 {
			t.Fatalf("%+v, %v", m, err)
		}
		return m
	}
	if d := show().Deliveries[0]; d.State != team.Mailed || d.Evidence != "in the mailbox file" || d.At == 0 {
		t.Errorf("%+v", d)
	}
	if m := show(); m.Summary != "hello there, this is a message of more than ten..." || sent.Message != "Message sent to a's inbox" {
		t.Errorf("%q, %q", m.Summary, sent.Message)
	}
	if sent.Routing.Sender != team.LeadName || sent.Routing.Target != "@a" || sent.Routing.TargetColor == "" {
		t.Errorf("%+v", sent.Routing)
	}
	// A program that knows nothing of us marks its mailbox: that is evidence.
	box, err := inbox.Open(r.Layout.Inboxes(), r.Layout.Locks(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.MarkAllRead(ctx); err != nil {
		t.Fatal(err)
	}
	if d := show().Deliveries[0]; d.State != team.Read || d.Evidence != "marked as read in the mailbox file" {
		t.Errorf("%+v", d)
	}
	reply, err := r.Send(ctx, a, SendIn{Recipient: team.LeadName, Content: "hi", Parent: sent.MessageID[:8]})
	if err != nil {
		t.Fatal(err)
	}
	m := show()
	if d := m.Deliveries[0]; d.State != team.Answered || d.Evidence != "reply "+reply.MessageID || len(m.Replies) != 1 {
		t.Errorf("%+v", m)
	}
	var states []string
	for _, e := range m.History {
		states = append(states, e.After)
	}
	if got := strings.Join(states, " "); got != "posted mailed read answered" {
		t.Errorf("history: %s", got)
	}
	// A mailbox that is gone shows nothing: the state stays as it was known.
	other := r.say(Person(), "a", "again")
	if err := os.Remove(filepath.Join(r.Layout.Inboxes(), "a.json")); err != nil {
		t.Fatal(err)
	}
	if m, err := r.MessageShow(ctx, other.MessageID); err != nil || m.Deliveries[0].State != team.Mailed {
		t.Errorf("%+v, %v", m.Deliveries, err)
	}
}

func TestAwait(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	r.as("b", team.RoleExecutor)
	sent := r.say(Person(), "a", "one")
	_, err := r.Await(ctx, sent.MessageID, team.Accepted, 20*time.Millisecond)
	denied(t, err, team.CodeTimeout, "")
	if !strings.Contains(err.Error(), "a (mailed)") {
		t.Errorf("%v", err)
	}
	// Accepted waits for that or more, and wakes when it comes.
	waited := make(chan error, 1)
	go func() {
		_, err := r.Await(ctx, sent.MessageID, team.Accepted, 20*time.Second)
		waited <- err
	}()
	if _, err := r.consume(ctx, a); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	// A mark in the file of one of several recipients wakes it too.
	all, err := r.Send(ctx, Person(), SendIn{Type: "broadcast", Content: "all"})
	if err != nil {
		t.Fatal(err)
	}
	if all.Message != "Message broadcast to 2 teammate(s): a, b" {
		t.Errorf("%q", all.Message)
	}
	go func() {
		_, err := r.Await(ctx, all.MessageID, team.Read, 20*time.Second)
		waited <- err
	}()
	for _, name := range []string{"a", "b"} {
		box, err := inbox.Open(r.Layout.Inboxes(), r.Layout.Locks(), name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := box.MarkAllRead(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	// A member that has left reads nothing more.
	late := r.say(Person(), "a", "late")
	go func() {
		_, err := r.Await(ctx, late.MessageID, team.Answered, 20*time.Second)
		waited <- err
	}()
	if err := r.Ledger.RemoveMember(ctx, a.Session); err != nil {
		t.Fatal(err)
	}
	denied(t, <-waited, team.CodeConflict, "dropped")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := r.Await(ended, all.MessageID, team.Answered, 0); err == nil {
		t.Error("waited after the end")
	}
}

// A mailbox that cannot be written hides neither the mail of others nor itself.
func TestBroadcastFailsForOne(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	for _, name := range []string{"a", "b", "c"} {
		r.as(name, team.RoleExecutor)
	}
	bad := filepath.Join(r.Layout.Inboxes(), "b.json")
	if err := os.Mkdir(bad, 0o700); err != nil {
		t.Fatal(err)
	}
	sent, err := r.Send(ctx, Person(), SendIn{Type: "broadcast", Content: "all"})
	if err != nil || len(sent.Deliveries) != 3 {
		t.Fatalf("%+v, %v", sent, err)
	}
	for _, d := range sent.Deliveries {
		want := team.Mailed
		if d.Recipient == "b" {
			want = team.Posted
		}
		if d.State != want || (d.Reason != "") != (d.Recipient == "b") {
			t.Errorf("%+v", d)
		}
	}
	if !strings.HasPrefix(sent.Message, "Message posted; it will be delivered, but it is not in the inbox yet of b (write to b's mailbox: ") {
		t.Errorf("the sender is told %q", sent.Message)
	}
	if err := os.Remove(bad); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for len(r.inbox("b")) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("the message was never mailed")
		}
		<-tick.C
		if _, _, err := (mail.Mailer{Layout: r.Layout, Ledger: r.Ledger}).Sweep(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSendRefuses(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	no := false
	for name, tt := range map[string]struct {
		in     SendIn
		code   team.Code
		reason string
	}{
		"kind":            {SendIn{Type: "gossip", Recipient: "a", Content: "x"}, team.CodeInvalid, ""},
		"no recipient":    {SendIn{Content: "x"}, team.CodeInvalid, ""},
		"empty":           {SendIn{Recipient: "a", Content: " "}, team.CodeInvalid, ""},
		"unknown":         {SendIn{Recipient: "ghost", Content: "x"}, team.CodeNotFound, team.ReasonMemberNotFound},
		"other team":      {SendIn{Recipient: "a@x", Content: "x"}, team.CodeInvalid, ""},
		"self":            {SendIn{Recipient: team.LeadName, Content: "x"}, team.CodeInvalid, team.ReasonSelfSend},
		"permission":      {SendIn{Type: "permission_response", Recipient: "a", Content: `{"type":"permission_response"}`}, team.CodeInvalid, ""},
		"plan":            {SendIn{Type: "plan_approval_response", RequestID: "nosuch", Approve: &no, Content: "x"}, team.CodeNotFound, team.ReasonNoApproval},
		"shutdown answer": {SendIn{Type: "shutdown_response", RequestID: "x", Approve: &no, Content: "x"}, team.CodeInvalid, ""},
		"parent":          {SendIn{Recipient: "a", Content: "x", Parent: "nosuch"}, team.CodeNotFound, team.ReasonMessageNotFound},
		"task":            {SendIn{Recipient: "a", Content: "x", Task: "1"}, team.CodeInvalid, ""},
	} {
		_, err := r.Send(ctx, Person(), tt.in)
		if team.CodeOf(err) != tt.code || tt.reason != "" && team.ReasonOf(err) != tt.reason {
			t.Errorf("%s: %s/%s (%v)", name, team.CodeOf(err), team.ReasonOf(err), err)
		}
	}
	_, err := r.Send(ctx, a, SendIn{Type: "shutdown_response", RequestID: "shutdown-1@a", Content: "x", Approve: &no})
	denied(t, err, team.CodeNotFound, "request_not_found")
	_, err = r.Send(ctx, a, SendIn{Type: "shutdown_response", RequestID: "shutdown-1@a", Approve: &no})
	denied(t, err, team.CodeInvalid, "")
}

// A message that is forwarded too often is dropped, which its sender and the log are told.
func TestHops(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	c := []Caller{r.as("a", team.RoleExecutor), r.as("b", team.RoleExecutor)}
	id := r.say(Person(), "a", "pass it on").MessageID
	for hop := 1; hop <= team.MaxHops; hop++ {
		to := c[hop%2]
		sent, err := r.Send(ctx, c[(hop+1)%2], SendIn{Recipient: to.Name, Forward: id, Content: "fyi"})
		if err != nil {
			t.Fatal(err)
		}
		m, err := r.Ledger.Message(ctx, sent.MessageID)
		if err != nil || m.Hop != hop || !strings.HasPrefix(m.Text, "fyi\n\n[from ") {
			t.Fatalf("%+v, %v", m, err)
		}
		id = sent.MessageID
	}
	from := c[(team.MaxHops)%2]
	_, err := r.Send(ctx, from, SendIn{Recipient: c[(team.MaxHops+1)%2].Name, Forward: id})
	denied(t, err, team.CodeLimit, team.ReasonHopLimit)
	if want := "the message was dropped: it has made 4 hops, the limit is 3"; err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	dropped := r.events("message.dropped")
	if len(dropped) != 1 || dropped[0].Who != from.Name || !strings.Contains(string(dropped[0].Data), `"hop":4`) {
		t.Errorf("%+v", dropped)
	}
	// An answer goes no further than what it answers.
	if sent, err := r.Send(ctx, from, SendIn{Recipient: team.LeadName, Parent: id, Content: "done"}); err != nil {
		t.Error(err)
	} else if m, err := r.Ledger.Message(ctx, sent.MessageID); err != nil || m.Hop != team.MaxHops {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestShutdownResponse(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a, b := r.as("a", team.RoleExecutor), r.as("b", team.RoleExecutor)
	text, err := inbox.Encode(inbox.ShutdownRequest{RequestID: "shutdown-7@a", From: team.LeadName, Timestamp: inbox.Timestamp(time.Now())})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Post(ctx, ledger.NewMessage{Kind: team.KindShutdownRequest, From: team.LeadName, To: "a", RequestID: "shutdown-7@a", Text: text}); err != nil {
		t.Fatal(err)
	}
	yes, no := true, false
	in := SendIn{Type: "shutdown_response", RequestID: "shutdown-7@a", Approve: &no, Content: "mid-task"}
	_, err = r.Send(ctx, b, in)
	denied(t, err, team.CodeNotFound, "request_not_found") // it is not b's to answer
	if _, err := r.Send(ctx, a, in); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Send(ctx, a, in); err != nil {
		t.Errorf("the same answer again: %v", err)
	}
	in.Approve = &yes
	_, err = r.Send(ctx, a, in)
	denied(t, err, team.CodeConflict, team.ReasonAlreadyResolved)
	mail := r.inbox(team.LeadName)
	if len(mail) != 1 || mail[0].Kind != "shutdown_rejected" || mail[0].From != "a" {
		t.Fatalf("%+v", mail)
	}
	var f inbox.ShutdownRejected
	if err := json.Unmarshal(mail[0].Frame, &f); err != nil || f.Reason != "mid-task" || f.RequestID != "shutdown-7@a" {
		t.Errorf("%+v, %v", f, err)
	}
}

// A member that approves gets the documented answer, and the lead is told where the approver runs,
// from the roster.
func TestShutdownApproval(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	text, err := inbox.Encode(inbox.ShutdownRequest{RequestID: "shutdown-8@a", From: team.LeadName, Timestamp: inbox.Timestamp(time.Now())})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Post(ctx, ledger.NewMessage{Kind: team.KindShutdownRequest, From: team.LeadName, To: "a", RequestID: "shutdown-8@a", Text: text}); err != nil {
		t.Fatal(err)
	}
	yes := true
	sent, err := r.Send(ctx, a, SendIn{Type: "shutdown_response", RequestID: "shutdown-8@a", Approve: &yes})
	if err != nil || !sent.Success || sent.Message != "Shutdown approved. Agent a is now exiting." || sent.RequestID != "shutdown-8@a" {
		t.Errorf("%+v, %v", sent, err)
	}
	mail := r.inbox(team.LeadName)
	if len(mail) != 1 {
		t.Fatalf("%+v", mail)
	}
	var f inbox.ShutdownApproved
	if err := json.Unmarshal(mail[0].Frame, &f); err != nil || f.From != "a" || f.RequestID != "shutdown-8@a" ||
		f.PaneID != "%9" || f.BackendType != "tmux" {
		t.Errorf("%+v, %v", f, err)
	}
}

// The lead gets the answer, too, if an operator made the request.
func TestLeadHearsTheAnswerToAnOperator(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	r.as("op", team.RoleOperator)
	for i, approve := range []bool{false, true} {
		id := fmt.Sprintf("shutdown-%d@a", i+1)
		text, err := inbox.Encode(inbox.ShutdownRequest{RequestID: id, From: "op", Timestamp: inbox.Timestamp(time.Now())})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Post(ctx, ledger.NewMessage{Kind: team.KindShutdownRequest, From: "op", To: "a", RequestID: id, Text: text}); err != nil {
			t.Fatal(err)
		}
		if approve { // whoever has asked may be gone by then
			op, err := r.Ledger.Member(ctx, "op")
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Ledger.RemoveMember(ctx, op.SessionKey); err != nil {
				t.Fatal(err)
			}
		}
		sent, err := r.Send(ctx, a, SendIn{Type: "shutdown_response", RequestID: id, Approve: &approve, Content: "mid-task"})
		want := []string{"op", team.LeadName}
		if approve {
			want = want[1:]
		}
		if err != nil || !slices.Equal(sent.Recipients, want) {
			t.Fatalf("%+v, %v", sent, err)
		}
	}
	mail := r.inbox(team.LeadName)
	if len(mail) != 2 || mail[0].Kind != "shutdown_rejected" || mail[1].Kind != "shutdown_approved" || !strings.Contains(mail[0].Text, "mid-task") {
		t.Errorf("%+v", mail)
	}
}

// A message that a channel has handed over and marked in the mailbox file is accepted, not read:
// the agent has said nothing.
func TestOwnMarkIsNoReceipt(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	r.as("a", team.RoleExecutor)
	sent := r.say(Person(), "a@demo", "hello")
	for _, state := range []team.DeliveryState{team.Injected, team.Accepted} {
		if _, err := r.Ledger.Mark(ctx, ledger.DeliveryMark{MessageID: sent.MessageID, Recipient: "a", State: state, Evidence: "by a hook"}); err != nil {
			t.Fatal(err)
		}
		box, err := inbox.Open(r.Layout.Inboxes(), r.Layout.Locks(), "a")
		if err == nil {
			_, err = box.MarkRead(ctx, sent.MessageID)
		}
		if err != nil {
			t.Fatal(err)
		}
		if m, err := r.MessageShow(ctx, sent.MessageID); err != nil || m.Deliveries[0].State != state {
			t.Errorf("it is %+v, %v; want %s", m.Deliveries, err, state)
		}
	}
}
