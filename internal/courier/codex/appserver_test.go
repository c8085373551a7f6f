package codex

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/internal/fakecli"
	"github.com/teamctl/teamctl/internal/fakemodel"
	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig has a fake app-server, its model, and a channel to it.
type rig struct {
	*couriertest.Rig
	facts courier.Facts
}

// open opens the channel, which is closed at the end of the test.
func (r *rig) open(t *testing.T) {
	t.Helper()
	ch, err := Open(t.Context(), r.facts, nil, r.Report)
	r.Use(t, ch, err)
}

// startCodex starts the rig's fake app-server.
func startCodex(t *testing.T, r *rig, approve bool) *fakecli.AppServer {
	t.Helper()
	s, err := fakecli.StartAppServer(r.Socket(), fakecli.NewEngine(r.Model.URL, r.Dir), "thread-1", r.Dir, approve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func codexRig(t *testing.T) *rig {
	base := couriertest.New(t)
	return &rig{base, courier.Facts{
		Bundle: team.Bundle(base.Dir), Name: "coder", AgentID: "coder@demo", Generation: "g1", Dir: base.Dir, Log: slog.New(slog.DiscardHandler),
		Link: adapter.Link{Agent: "codex", Ways: []adapter.Way{adapter.WayAppServer}, Socket: base.Socket()},
	}}
}

// ready reports whether the channel has found the conversation.
func ready(o team.Observation) bool { return o.Ready && o.Conversation == "thread-1" }

func TestAppServerDelivers(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	r.open(t)
	if out := r.Deliver(t, false, "m0", "x"); out[0].State != team.Held || out[0].Reason == "" {
		t.Fatalf("before there is a server: %+v", out[0])
	}
	startCodex(t, r, false)
	r.Wait(t, "the thread", 0, ready)

	// Idle: the message begins a turn. The thread had none, so the channel could not subscribe
	// before.
	if out := r.Deliver(t, false, "m1", "@@shell until test -e go; do read -t 0.05 <> <(:); done\n@@say first done"); out[0].State != team.Injected {
		t.Fatalf("idle: %+v", out[0])
	}
	r.Wait(t, "the receipt", 0, couriertest.Receipt("m1"))
	r.Wait(t, "working", 0, couriertest.Is(team.Working))
	// Busy: the messages arrive at the tool boundary, in the same turn.
	from := r.Mark()
	if out := r.Deliver(t, false, "m2", "@@shell echo steered\n@@say steered done", "m3", "a word of mine"); out[0].State != team.Injected || out[1].State != team.Injected {
		t.Fatalf("busy: %+v", out)
	}
	if n := r.Accepted("m2"); n != 0 {
		t.Fatal("accepted before the conversation had it")
	}
	r.Touch(t, "go")
	r.Wait(t, "the receipt", from, couriertest.Receipt("m2"))
	r.Wait(t, "the receipt", from, couriertest.Receipt("m3"))
	r.Asked(t, "a word of mine")
	r.Wait(t, "idle", from, couriertest.Is(team.Idle))

	// A message in the conversation is not sent again.
	if out := r.Deliver(t, false, "m2", "@@say twice"); out[0].State != team.Accepted || out[0].Evidence == "" {
		t.Fatalf("once more: %+v", out[0])
	}
	for _, id := range []string{"m1", "m2", "m3"} {
		if n := r.Accepted(id); n != 1 {
			t.Errorf("%s has %d receipts", id, n)
		}
	}
	if n := r.Model.Arrivals("@@say twice"); n != 0 {
		t.Errorf("given twice: %d", n)
	}
}

// The supervisor is killed during a turn while one message waits for the boundary: the next
// supervisor must not send it again.
func TestAppServerTakenUpAgain(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	startCodex(t, r, false)
	r.open(t)
	r.Wait(t, "the thread", 0, ready)
	r.Deliver(t, false, "m1", "@@shell until test -e go; do read -t 0.05 <> <(:); done\n@@say done")
	r.Wait(t, "the receipt", 0, couriertest.Receipt("m1"))
	r.Deliver(t, false, "m2", "the second")
	r.Ch.Close()

	from := r.Mark()
	r.open(t)
	r.Wait(t, "working", from, couriertest.Is(team.Working))
	for _, marked := range []bool{true, false} { // killed before or after it was marked
		if out := r.Deliver(t, marked, "m2", "the second"); out[0].State != team.Held {
			t.Fatalf("while the turn may hold it: %+v", out[0])
		}
	}
	// A message that was never sent is sent, in the same turn.
	if out := r.Deliver(t, false, "m4", "the fourth"); out[0].State != team.Injected {
		t.Fatalf("a new one: %+v", out[0])
	}
	r.Touch(t, "go")
	r.Wait(t, "the receipt", from, couriertest.Receipt("m2"))
	r.Wait(t, "idle", from, couriertest.Is(team.Idle))
	// A message that was marked and never sent is sent now.
	if out := r.Deliver(t, true, "m2", "the second", "m3", "the third"); out[0].State != team.Accepted || out[1].State != team.Injected {
		t.Fatalf("when it is idle: %+v", out)
	}
	r.Wait(t, "the receipt", from, couriertest.Receipt("m3"))
	r.Asked(t, "the third")
	for _, text := range []string{"the second", "the third", "the fourth"} {
		if n := r.Model.Arrivals(text); n != 1 {
			t.Errorf("%q came %d times", text, n)
		}
	}
}

func TestAppServerPromptOnce(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	r.facts.Link.Prompt = "the prompt"
	s := startCodex(t, r, false)
	r.open(t)
	r.Asked(t, "the prompt")
	if o := r.All()[0]; o.Tier != team.TierChannel || o.Activity != team.ActivityUnknown {
		t.Errorf("before its server is reached: %+v", o)
	}
	r.Wait(t, "idle", 0, func(o team.Observation) bool { return o.Activity == team.Idle && o.Source == "thread/status/changed" })
	from := r.Mark()
	s.Drop() // the connection is lost and re-established
	r.Wait(t, "unknown", from, couriertest.Is(team.ActivityUnknown))
	r.Wait(t, "idle", from, couriertest.Is(team.Idle))
	r.HandedOver(t, "m1", "after it")
	r.Wait(t, "the receipt", from, couriertest.Receipt("m1"))
	if n := r.Model.Arrivals("the prompt"); n != 1 {
		t.Errorf("the prompt came %d times", n)
	}
}

func TestAppServerApproval(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	startCodex(t, r, true)
	r.open(t)
	r.Wait(t, "the thread", 0, ready)
	asked := func(o team.Observation) bool { return o.Ask != nil }
	for i, allow := range []bool{true, false} {
		from := r.Mark()
		r.Deliver(t, false, fmt.Sprint("m", i), fmt.Sprintf("@@shell touch it%d\n@@say over", i))
		o := r.Wait(t, "the question", from, asked)
		if o.Activity != team.Waiting || o.For != team.WaitPermission || o.Ask.Tool == "" || o.Ask.Description != "need it" {
			t.Fatalf("asked %+v %+v", o, o.Ask)
		}
		if i == 0 { // the next supervisor gets the request again
			r.Ch.Close()
			from = r.Mark()
			r.open(t)
			again := r.Wait(t, "the question again", from, asked)
			if again.Ask.ID != o.Ask.ID {
				t.Fatalf("asked %s, then %s", o.Ask.ID, again.Ask.ID)
			}
		}
		if err := r.Ch.Answer(t.Context(), team.Reply{ID: o.Ask.ID, For: o.Ask.For, Allow: allow}); err != nil {
			t.Fatal(err)
		}
		r.Wait(t, "settled", from, func(s team.Observation) bool { return s.Settled == o.Ask.ID })
		r.Wait(t, "idle", from, couriertest.Is(team.Idle))
		if r.Exists(fmt.Sprint("it", i)) != allow {
			t.Errorf("allowed %v, but the command ran otherwise", allow)
		}
		if err := r.Ch.Answer(t.Context(), team.Reply{ID: o.Ask.ID, Allow: true}); !team.IsCode(err, team.CodeNotFound) {
			t.Errorf("answered twice: %v", err)
		}
	}
}

// An answer that is tried at every observation after the connection was lost is never taken for one
// that comes too late: the app-server sends the open request again only after others.
func TestAppServerAnswerOverALostConnection(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	s := startCodex(t, r, true)
	a, err := newAppServer(r.facts, r.Answering(t), patience{askWithin, askAtWork, askAtRest})
	r.Use(t, a, err)
	a.start()
	r.Wait(t, "the thread", 0, ready)
	from := r.Mark()
	r.Deliver(t, false, "m1", "@@shell touch it\n@@say over")
	o := r.Wait(t, "the question", from, func(o team.Observation) bool { return o.Ask != nil })
	from = r.Mark()
	r.Owes(o.Ask.ID, couriertest.Is(team.ActivityUnknown))
	s.Drop()
	r.Wait(t, "idle", from, couriertest.Is(team.Idle))
	if !r.Exists("it") {
		t.Error("the command did not run")
	}
}

// A tool of another MCP server asks by a form, further permissions by a request of their own: both
// are requested and answered like a command.
func TestAppServerOtherApprovals(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	startCodex(t, r, true)
	r.open(t)
	r.Wait(t, "the thread", 0, ready)
	for i, c := range []struct{ call, tool, says string }{
		{"mcp__other__Do", "mcp__other", `Allow the other MCP server to run tool "Do"?`},
		{"request_permissions", "request_permissions", `{"network":{"enabled":true}}`},
	} {
		for _, allow := range []bool{true, false} {
			from := r.Mark()
			over := fmt.Sprintf("over-%d-%v", i, allow)
			r.Deliver(t, false, "m-"+over, fmt.Sprintf("@@call %s {}\n@@say %s", c.call, over))
			o := r.Wait(t, "the question", from, func(o team.Observation) bool { return o.Ask != nil })
			if o.Activity != team.Waiting || o.For != team.WaitPermission || o.Ask.Tool != c.tool || o.Ask.Description != c.says {
				t.Fatalf("asked %+v %+v", o, o.Ask)
			}
			if allow { // the next supervisor gets the same request again
				r.Ch.Close()
				from = r.Mark()
				r.open(t)
				if again := r.Wait(t, "the question again", from, func(o team.Observation) bool { return o.Ask != nil }); again.Ask.ID != o.Ask.ID {
					t.Fatalf("asked %s, then %s", o.Ask.ID, again.Ask.ID)
				}
			}
			if err := r.Ch.Answer(t.Context(), team.Reply{ID: o.Ask.ID, For: o.Ask.For, Allow: allow}); err != nil {
				t.Fatal(err)
			}
			r.Wait(t, "settled", from, func(s team.Observation) bool { return s.Settled == o.Ask.ID })
			r.Wait(t, "idle", from, couriertest.Is(team.Idle))
			q, err := r.Model.Wait(t.Context(), func(q fakemodel.Request) bool { return q.Answer == "say "+over })
			if err != nil {
				t.Fatal(err)
			}
			if ran := strings.Contains(q.New, "no tool "+c.call); ran != allow {
				t.Errorf("allowed %v, and the model is told %q", allow, q.New)
			}
		}
	}
}

// A form of another MCP server is a question, answered with the fields that a person fills in.
func TestAppServerForm(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	s := startCodex(t, r, true)
	r.open(t)
	r.Wait(t, "the thread", 0, ready)
	for i, c := range []struct {
		reply team.Reply
		want  string
	}{
		{team.Reply{Allow: true, Input: json.RawMessage(`{"colour":"red"}`)}, `{"colour":"red"}`},
		{team.Reply{}, ""},
	} {
		from := r.Mark()
		r.Deliver(t, false, fmt.Sprint("m", i), fmt.Sprintf("@@call ask_form {}\n@@say over %d", i))
		o := r.Wait(t, "the question", from, func(o team.Observation) bool { return o.Ask != nil })
		if o.For != team.WaitQuestion || o.Ask.Description != "Which colour?" || !strings.Contains(string(o.Ask.Input), `"required":["colour"]`) {
			t.Fatalf("asked %+v %+v", o, o.Ask)
		}
		c.reply.ID, c.reply.For = o.Ask.ID, o.Ask.For
		if err := r.Ch.Answer(t.Context(), c.reply); err != nil {
			t.Fatal(err)
		}
		r.Wait(t, "settled", from, func(o team.Observation) bool { return o.Settled == c.reply.ID })
		if got := s.Content(); got != c.want {
			t.Errorf("filled in %q, want %q", got, c.want)
		}
		r.Wait(t, "idle", from, couriertest.Is(team.Idle))
	}
}

// An interrupt ends the command of its turn; a command that the previous turn left in the
// background keeps running.
func TestInterruptEndsTheCommand(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	s := startCodex(t, r, false)
	r.open(t)
	r.Wait(t, "the thread", 0, ready)
	for turn := range 2 {
		id := fmt.Sprint("m", turn)
		from := r.Mark()
		r.Deliver(t, false, id, fmt.Sprintf("@@shell sleep 60%d\n@@say never", turn))
		r.Wait(t, "working", from, couriertest.Is(team.Working))
		for tick := couriertest.Ticker(t); len(s.Commands()) != turn+1; {
			tick(len(s.Commands()))
		}
		if turn == 0 {
			s.Engine.Interrupt() // by a person, at the agent's own screen
		} else if err := r.Ch.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.Wait(t, "idle", from, couriertest.Is(team.Idle))
	}
	for tick := couriertest.Ticker(t); !slices.Equal(s.Commands(), []string{"sleep 600"}); {
		tick(len(s.Commands()))
	}
}

func TestAppServerInterrupt(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	startCodex(t, r, false)
	r.open(t)
	r.Wait(t, "the thread", 0, ready)
	if err := r.Ch.Interrupt(t.Context()); err != nil {
		t.Fatalf("while idle: %v", err)
	}
	for _, reopened := range []bool{false, true} {
		from := r.Mark()
		r.Deliver(t, false, fmt.Sprint("m", reopened), "@@shell sleep 600\n@@say never")
		r.Wait(t, "working", from, couriertest.Is(team.Working))
		r.Wait(t, "the receipt", from, couriertest.Receipt(fmt.Sprint("m", reopened)))
		r.Asked(t, "never")
		if reopened { // the turn began before this connection
			r.Ch.Close()
			from = r.Mark()
			r.open(t)
			r.Wait(t, "working", from, couriertest.Is(team.Working))
		}
		if err := r.Ch.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.Wait(t, "idle", from, couriertest.Is(team.Idle))
	}
}

// Messages in random states of the agent arrive once each.
func TestAppServerSoak(t *testing.T) {
	t.Parallel()
	messages := 500
	if testing.Short() {
		messages = 160 // the connection is lost twice
	}
	r := codexRig(t)
	s := startCodex(t, r, false)
	r.open(t)
	r.Wait(t, "the thread", 0, ready)
	r.Soak(t, messages, func(i int) {
		switch {
		case i%97 == 50:
			s.Drop()
		case i%61 == 30:
			r.Ch.Close()
			r.open(t)
		}
	})
}

// TestAnswerOvertakesBusy: a thread that was idle when a turn was accepted may not have reported
// yet that it is busy; the turn's message is not sent again then.
func TestAnswerOvertakesBusy(t *testing.T) {
	t.Parallel()
	a := &appServer{silence: newSilence(patience{rest: time.Hour, work: time.Hour}), report: func(team.Observation) {}, poke: make(chan struct{}, 1), began: map[string]int{}}
	a.changed(threadStatus{Type: "idle"})
	a.began["m"] = a.rests // as start does when the turn is accepted
	if a.ambiguous(t.Context(), nil, "thread", "m") == "" {
		t.Error("given again before the turn was over")
	}
	a.changed(threadStatus{Type: "active"})
	if a.ambiguous(t.Context(), nil, "thread", "m") == "" {
		t.Error("given again to a busy thread")
	}
}
