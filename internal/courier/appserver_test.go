package courier

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/fakecli"
	"github.com/teamctl/teamctl/internal/fakemodel"
	"github.com/teamctl/teamctl/team"
)

func contains(s, sub string) bool { return strings.Contains(s, sub) }

// startCodex serves the fake app-server of the rig.
func startCodex(t *testing.T, r *rig, approve bool) *fakecli.AppServer {
	t.Helper()
	s, err := fakecli.StartAppServer(r.socket(), fakecli.NewEngine(r.model.URL, r.dir), "thread-1", r.dir, approve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func codexRig(t *testing.T) *rig {
	r := newRig(t, adapter.Link{Agent: "codex", Ways: []adapter.Way{adapter.WayAppServer}})
	r.facts.Link.Socket = r.socket()
	return r
}

// ready reports that the channel has found the conversation.
func ready(o team.Observation) bool { return o.Ready && o.Conversation == "thread-1" }

func TestAppServerDelivers(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	r.open(t, openAppServer)
	if out := r.deliver(t, false, "m0", "x"); out[0].State != team.Held || out[0].Reason == "" {
		t.Fatalf("before there is a server: %+v", out[0])
	}
	startCodex(t, r, false)
	r.wait(t, "the thread", 0, ready)

	// Idle: it begins a turn. The thread had none, so nobody could subscribe before.
	if out := r.deliver(t, false, "m1", "@@shell until test -e go; do read -t 0.05 <> <(:); done\n@@say first done"); out[0].State != team.Injected {
		t.Fatalf("idle: %+v", out[0])
	}
	r.wait(t, "the receipt", 0, receipt("m1"))
	r.wait(t, "working", 0, is(team.Working))
	// Busy: it goes in at the tool boundary, in the same turn.
	from := r.mark()
	if out := r.deliver(t, false, "m2", "@@shell echo steered\n@@say steered done", "m3", "a word of mine"); out[0].State != team.Injected || out[1].State != team.Injected {
		t.Fatalf("busy: %+v", out)
	}
	if n := r.accepted("m2"); n != 0 {
		t.Fatal("accepted before the conversation had it")
	}
	touch(t, r.dir, "go")
	r.wait(t, "the receipt", from, receipt("m2"))
	r.wait(t, "the receipt", from, receipt("m3"))
	r.asked(t, "a word of mine")
	r.wait(t, "idle", from, is(team.Idle))

	// What the conversation has is not given again.
	if out := r.deliver(t, false, "m2", "@@say twice"); out[0].State != team.Accepted || out[0].Evidence == "" {
		t.Fatalf("once more: %+v", out[0])
	}
	for _, id := range []string{"m1", "m2", "m3"} {
		if n := r.accepted(id); n != 1 {
			t.Errorf("%s has %d receipts", id, n)
		}
	}
	if n := r.model.Arrivals("@@say twice"); n != 0 {
		t.Errorf("given twice: %d", n)
	}
}

// The supervisor is killed in mid-turn, with one message waiting for the boundary:
// the next one must not give it again.
func TestAppServerTakenUpAgain(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	startCodex(t, r, false)
	r.open(t, openAppServer)
	r.wait(t, "the thread", 0, ready)
	r.deliver(t, false, "m1", "@@shell until test -e go; do read -t 0.05 <> <(:); done\n@@say done")
	r.wait(t, "the receipt", 0, receipt("m1"))
	r.deliver(t, false, "m2", "the second")
	r.ch.Close()

	from := r.mark()
	r.open(t, openAppServer)
	r.wait(t, "working", from, is(team.Working))
	for _, marked := range []bool{true, false} { // killed before or after it was marked
		if out := r.deliver(t, marked, "m2", "the second"); out[0].State != team.Held {
			t.Fatalf("while the turn may hold it: %+v", out[0])
		}
	}
	// What was never given is, in the same turn.
	if out := r.deliver(t, false, "m4", "the fourth"); out[0].State != team.Injected {
		t.Fatalf("a new one: %+v", out[0])
	}
	touch(t, r.dir, "go")
	r.wait(t, "the receipt", from, receipt("m2"))
	r.wait(t, "idle", from, is(team.Idle))
	// One that was marked and never sent is given now.
	if out := r.deliver(t, true, "m2", "the second", "m3", "the third"); out[0].State != team.Accepted || out[1].State != team.Injected {
		t.Fatalf("when it is idle: %+v", out)
	}
	r.wait(t, "the receipt", from, receipt("m3"))
	r.asked(t, "the third")
	for _, text := range []string{"the second", "the third", "the fourth"} {
		if n := r.model.Arrivals(text); n != 1 {
			t.Errorf("%q came %d times", text, n)
		}
	}
}

func TestAppServerPromptOnce(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	r.facts.Link.Prompt = "the prompt"
	s := startCodex(t, r, false)
	r.open(t, openAppServer)
	r.asked(t, "the prompt")
	r.wait(t, "idle", 0, func(o team.Observation) bool { return o.Activity == team.Idle && o.Source == "thread/status/changed" })
	from := r.mark()
	s.Drop() // the connection is lost, and made again
	r.wait(t, "unknown", from, is(team.ActivityUnknown))
	r.wait(t, "idle", from, is(team.Idle))
	r.handedOver(t, "m1", "after it")
	r.wait(t, "the receipt", from, receipt("m1"))
	if n := r.model.Arrivals("the prompt"); n != 1 {
		t.Errorf("the prompt came %d times", n)
	}
}

func TestAppServerApproval(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	startCodex(t, r, true)
	r.open(t, openAppServer)
	r.wait(t, "the thread", 0, ready)
	asked := func(o team.Observation) bool { return o.Ask != nil }
	for i, allow := range []bool{true, false} {
		from := r.mark()
		r.deliver(t, false, fmt.Sprint("m", i), fmt.Sprintf("@@shell touch it%d\n@@say over", i))
		o := r.wait(t, "the question", from, asked)
		if o.Activity != team.Waiting || o.For != team.WaitPermission || o.Ask.Tool == "" || o.Ask.Description != "need it" {
			t.Fatalf("asked %+v %+v", o, o.Ask)
		}
		if i == 0 { // whoever takes over is asked again
			r.ch.Close()
			from = r.mark()
			r.open(t, openAppServer)
			again := r.wait(t, "the question again", from, asked)
			if again.Ask.ID != o.Ask.ID {
				t.Fatalf("asked %s, then %s", o.Ask.ID, again.Ask.ID)
			}
		}
		if err := r.ch.Answer(t.Context(), team.Reply{ID: o.Ask.ID, For: o.Ask.For, Allow: allow}); err != nil {
			t.Fatal(err)
		}
		r.wait(t, "settled", from, func(s team.Observation) bool { return s.Settled == o.Ask.ID })
		r.wait(t, "idle", from, is(team.Idle))
		if exists(r.dir, fmt.Sprint("it", i)) != allow {
			t.Errorf("allowed %v, but the command ran otherwise", allow)
		}
		if err := r.ch.Answer(t.Context(), team.Reply{ID: o.Ask.ID, Allow: true}); !team.IsCode(err, team.CodeNotFound) {
			t.Errorf("answered twice: %v", err)
		}
	}
}

// A tool of somebody's MCP server asks by a form, more rights by a request of their
// own: both are asked and answered like a command.
func TestAppServerOtherApprovals(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	startCodex(t, r, true)
	r.open(t, openAppServer)
	r.wait(t, "the thread", 0, ready)
	for i, c := range []struct{ call, tool, says string }{
		{"mcp__other__Do", "mcp__other", `Allow the other MCP server to run tool "Do"?`},
		{"request_permissions", "request_permissions", `{"network":{"enabled":true}}`},
	} {
		for _, allow := range []bool{true, false} {
			from := r.mark()
			over := fmt.Sprintf("over-%d-%v", i, allow)
			r.deliver(t, false, "m-"+over, fmt.Sprintf("@@call %s {}\n@@say %s", c.call, over))
			o := r.wait(t, "the question", from, func(o team.Observation) bool { return o.Ask != nil })
			if o.Activity != team.Waiting || o.For != team.WaitPermission || o.Ask.Tool != c.tool || o.Ask.Description != c.says {
				t.Fatalf("asked %+v %+v", o, o.Ask)
			}
			if allow { // whoever takes over is asked again, the same
				r.ch.Close()
				from = r.mark()
				r.open(t, openAppServer)
				if again := r.wait(t, "the question again", from, func(o team.Observation) bool { return o.Ask != nil }); again.Ask.ID != o.Ask.ID {
					t.Fatalf("asked %s, then %s", o.Ask.ID, again.Ask.ID)
				}
			}
			if err := r.ch.Answer(t.Context(), team.Reply{ID: o.Ask.ID, For: o.Ask.For, Allow: allow}); err != nil {
				t.Fatal(err)
			}
			r.wait(t, "settled", from, func(s team.Observation) bool { return s.Settled == o.Ask.ID })
			r.wait(t, "idle", from, is(team.Idle))
			q, err := r.model.Wait(t.Context(), func(q fakemodel.Request) bool { return q.Answer == "say "+over })
			if err != nil {
				t.Fatal(err)
			}
			if ran := contains(q.New, "no tool "+c.call); ran != allow {
				t.Errorf("allowed %v, and the model is told %q", allow, q.New)
			}
		}
	}
}

// A form of somebody's MCP server is a question, and is answered with what a person has
// filled in.
func TestAppServerForm(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	s := startCodex(t, r, true)
	r.open(t, openAppServer)
	r.wait(t, "the thread", 0, ready)
	for i, c := range []struct {
		reply team.Reply
		want  string
	}{
		{team.Reply{Allow: true, Input: json.RawMessage(`{"colour":"red"}`)}, `{"colour":"red"}`},
		{team.Reply{}, ""},
	} {
		from := r.mark()
		r.deliver(t, false, fmt.Sprint("m", i), fmt.Sprintf("@@call ask_form {}\n@@say over %d", i))
		o := r.wait(t, "the question", from, func(o team.Observation) bool { return o.Ask != nil })
		if o.For != team.WaitQuestion || o.Ask.Description != "Which colour?" || !contains(string(o.Ask.Input), `"required":["colour"]`) {
			t.Fatalf("asked %+v %+v", o, o.Ask)
		}
		c.reply.ID, c.reply.For = o.Ask.ID, o.Ask.For
		if err := r.ch.Answer(t.Context(), c.reply); err != nil {
			t.Fatal(err)
		}
		r.wait(t, "settled", from, func(o team.Observation) bool { return o.Settled == c.reply.ID })
		if got := s.Content(); got != c.want {
			t.Errorf("filled in %q, want %q", got, c.want)
		}
		r.wait(t, "idle", from, is(team.Idle))
	}
}

func TestAppServerInterrupt(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	startCodex(t, r, false)
	r.open(t, openAppServer)
	r.wait(t, "the thread", 0, ready)
	if err := r.ch.Interrupt(t.Context()); err != nil {
		t.Fatalf("while idle: %v", err)
	}
	for _, reopened := range []bool{false, true} {
		from := r.mark()
		r.deliver(t, false, fmt.Sprint("m", reopened), "@@shell sleep 600\n@@say never")
		r.wait(t, "working", from, is(team.Working))
		r.wait(t, "the receipt", from, receipt(fmt.Sprint("m", reopened)))
		r.asked(t, "never")
		if reopened { // the turn is not of this connection
			r.ch.Close()
			from = r.mark()
			r.open(t, openAppServer)
			r.wait(t, "working", from, is(team.Working))
		}
		if err := r.ch.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.wait(t, "idle", from, is(team.Idle))
	}
}

// Messages in random states of the agent: each comes once.
func TestAppServerSoak(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	s := startCodex(t, r, false)
	r.open(t, openAppServer)
	r.wait(t, "the thread", 0, ready)
	soak(t, r, 500, func(i int) {
		switch {
		case i%97 == 50:
			s.Drop()
		case i%61 == 30:
			r.ch.Close()
			r.open(t, openAppServer)
		}
	})
}

// soak gives n messages, with what disturb does in between, until each is accepted,
// as a supervisor would: what is held is given again, what is injected is given
// again as such after the channel was lost.
func soak(t *testing.T, r *rig, n int, disturb func(i int)) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	var open []string
	injected := map[string]bool{}
	try := func() {
		var left []string
		for _, id := range open {
			if r.accepted(id) > 0 {
				continue
			}
			text := "number <" + id + ">"
			if rnd.IntN(10) == 0 {
				text += "\n@@shell echo work"
			}
			out := r.deliver(t, injected[id], id, text)
			if out[0].State == team.Accepted {
				continue
			}
			injected[id] = injected[id] || out[0].State == team.Injected
			left = append(left, id)
		}
		open = left
	}
	for i := range n {
		open = append(open, fmt.Sprintf("s%d", i))
		disturb(i)
		if i%5 == 4 {
			try()
		}
	}
	deadline := ticker(t)
	for len(open) > 0 {
		deadline(len(open))
		try()
	}
	for i := range n {
		id := fmt.Sprintf("s%d", i)
		r.asked(t, "<"+id+">") // accepted is told a moment before the model is asked
		if got := r.model.Arrivals("<" + id + ">"); got != 1 {
			t.Errorf("%s came %d times", id, got)
		}
	}
}

// TestAnswerOvertakesBusy: a thread that was idle when a turn was accepted may not have
// told yet that it is busy; what that turn was begun with is not given again then.
func TestAnswerOvertakesBusy(t *testing.T) {
	t.Parallel()
	a := &appServer{report: func(team.Observation) {}, poke: make(chan struct{}, 1), began: map[string]int{}}
	a.changed(threadStatus{Type: "idle"})
	a.began["m"] = a.rests // as start does once the turn is accepted
	if a.ambiguous(t.Context(), nil, "thread", "m") == "" {
		t.Error("given again before the turn was over")
	}
	a.changed(threadStatus{Type: "active"})
	if a.ambiguous(t.Context(), nil, "thread", "m") == "" {
		t.Error("given again to a busy thread")
	}
}
