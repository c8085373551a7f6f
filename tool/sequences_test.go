package tool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// The three documented sequences, as members run them. A failed task ends nothing: the run
// continues.
func TestSequences(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	lead, a, b := Person(), r.as("a", team.RoleExecutor), r.as("b", team.RoleExecutor)
	run, err := r.Ledger.CurrentRun(ctx)
	if err != nil {
		t.Fatal(err)
	}
	send := func(c Caller, in SendIn) Sent {
		t.Helper()
		sent, err := r.Send(ctx, c, in)
		if err != nil {
			t.Fatal(err)
		}
		return sent
	}
	got := func(c Caller) string { // what a member reads, once
		t.Helper()
		in, err := r.consume(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, e := range in.Entries {
			texts = append(texts, e.From+": "+e.Text)
		}
		return strings.Join(texts, ", ")
	}
	state := func(id, recipient string) team.DeliveryState {
		t.Helper()
		d, err := r.Ledger.Delivery(ctx, id, recipient)
		if err != nil {
			t.Fatal(err)
		}
		return d.State
	}
	thread := func(id string) string {
		t.Helper()
		th, err := r.Ledger.Thread(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, l := range th.Lines {
			lines = append(lines, fmt.Sprintf("%d %s %s>%s", l.Depth, l.Kind, l.From, l.To))
		}
		return strings.Join(lines, "; ")
	}

	// Delegation: a request, and the response to it.
	ask := send(lead, SendIn{Type: "task_request", Recipient: "a", Content: "count the files"})
	if s := got(a); s != "team-lead: count the files" {
		t.Errorf("a reads %q", s)
	}
	send(a, SendIn{Type: "task_response", Recipient: team.LeadName, Parent: ask.MessageID, Content: "42"})
	if s := got(lead); s != "a: 42" {
		t.Errorf("the lead reads %q", s)
	}
	if s := thread(ask.MessageID); s != "0 task_request team-lead>a; 1 task_response a>team-lead" || state(ask.MessageID, "a") != team.Answered {
		t.Errorf("%s, %s", s, state(ask.MessageID, "a"))
	}

	// Broadcast: to everybody, and nobody has to reply.
	all := send(lead, SendIn{Type: "broadcast", Content: "main is frozen"})
	if x, y := got(a), got(b); x != "team-lead: main is frozen" || y != x {
		t.Errorf("a reads %q, b %q", x, y)
	}
	if x, y := state(all.MessageID, "a"), state(all.MessageID, "b"); x != team.Read || y != team.Read {
		t.Errorf("%s, %s", x, y)
	}

	// Error recovery: an error is a signal, and the lead tries again with a new message.
	first := send(lead, SendIn{Type: "task_request", Recipient: "a", Content: "build it"})
	send(a, SendIn{Type: "error", Recipient: team.LeadName, Parent: first.MessageID, Content: "no compiler"})
	if s := got(lead); s != "a: no compiler" {
		t.Errorf("the lead reads %q", s)
	}
	if now, err := r.Ledger.CurrentRun(ctx); err != nil || now != run {
		t.Errorf("the run was %+v and is %+v, %v", run, now, err)
	}
	again := send(lead, SendIn{Type: "task_request", Recipient: "b", Parent: first.MessageID, Content: "build it, a could not"})
	send(b, SendIn{Type: "task_response", Recipient: team.LeadName, Parent: again.MessageID, Content: "built"})
	if s := got(lead); s != "b: built" {
		t.Errorf("the lead reads %q", s)
	}
	want := "0 task_request team-lead>a; 1 error a>team-lead; 1 task_request team-lead>b; 2 task_response b>team-lead"
	if s := thread(again.MessageID); s != want {
		t.Errorf("%s", s)
	}
	if list, err := r.Ledger.Messages(ctx, ledger.MessageFilter{Run: run.ID, Kind: team.KindError}); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}
