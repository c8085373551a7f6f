package opencode

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/internal/fakecli"
	"github.com/teamctl/teamctl/team"
)

// rig has a fake server, its model, and a channel to it.
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

// freePort returns a loopback address that was free a moment ago. Its port is below those that the
// kernel assigns to connections, so that no connection of another test takes it.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 12000+rand.IntN(20000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port")
	return ""
}

func openCodeRig(t *testing.T) (r *rig, addr string) {
	base := couriertest.New(t)
	addr = freePort(t)
	return &rig{base, courier.Facts{
		Bundle: team.Bundle(base.Dir), Name: "coder", AgentID: "coder@demo", Generation: "g1", Dir: base.Dir, Log: slog.New(slog.DiscardHandler),
		Link: adapter.Link{Agent: "opencode", Ways: []adapter.Way{adapter.WayServer}, URL: "http://" + addr, User: "opencode", Secret: "pw"},
	}}, addr
}

func startOpenCode(t *testing.T, r *rig, addr string, approve bool) *fakecli.OpenCode {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Minute); ; <-tick.C {
		s, err := fakecli.StartOpenCode(addr, "pw", fakecli.NewEngine(r.Model.URL, r.Dir), approve)
		if err == nil {
			t.Cleanup(s.Close)
			return s
		}
		// A process started by a parallel test holds this listener between its fork and its exec.
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func up(o team.Observation) bool {
	return o.Ready && o.Conversation == "ses_1" && o.Source == "session"
}

func TestServerDelivers(t *testing.T) {
	t.Parallel()
	r, addr := openCodeRig(t)
	r.facts.Link.Prompt = "the prompt"
	r.open(t)
	if out := r.Deliver(t, false, "m0", "x"); out[0].State != team.Held || out[0].Reason == "" {
		t.Fatalf("before there is a server: %+v", out[0])
	}
	if o := r.All()[0]; o.Tier != team.TierChannel || o.Activity != team.ActivityUnknown {
		t.Errorf("before there is a server: %+v", o)
	}
	s := startOpenCode(t, r, addr, false)
	r.Wait(t, "the session", 0, up)
	r.Asked(t, "the prompt")

	r.Deliver(t, false, "m1", "@@shell until test -e go; do read -t 0.05 <> <(:); done\n@@say first done")
	r.Wait(t, "the receipt", 0, couriertest.Receipt("m1"))
	from := r.Mark()
	if out := r.Deliver(t, false, "m2", "@@say second done", "m3", "a word of mine"); out[0].State != team.Injected || out[1].State != team.Injected {
		t.Fatalf("busy: %+v", out)
	}
	r.Wait(t, "the receipt", from, couriertest.Receipt("m2"))
	r.Wait(t, "the receipt", from, couriertest.Receipt("m3"))
	// The supervisor is killed: the next one finds the session and its messages.
	r.Ch.Close()
	from = r.Mark()
	r.open(t)
	r.Wait(t, "the session", from, up)
	r.Wait(t, "working", from, couriertest.Is(team.Working))
	if out := r.Deliver(t, true, "m2", "@@say second done", "m3", "a word of mine"); out[0].State != team.Accepted || out[1].State != team.Accepted {
		t.Fatalf("again: %+v", out)
	}
	r.Touch(t, "go")
	r.Wait(t, "idle", from, couriertest.Is(team.Idle))

	from = r.Mark()
	s.Drop()
	r.Wait(t, "unknown", from, couriertest.Is(team.ActivityUnknown))
	r.Wait(t, "idle", from, couriertest.Is(team.Idle))
	if out := r.Deliver(t, true, "m3", "a word of mine"); out[0].State != team.Accepted || out[0].Evidence == "" {
		t.Fatalf("once more: %+v", out[0])
	}
	for _, text := range []string{"the prompt", "@@say second done", "a word of mine"} {
		if n := r.Model.Arrivals(text); n != 1 {
			t.Errorf("%q came %d times", text, n)
		}
	}
}

func TestServerApproval(t *testing.T) {
	t.Parallel()
	r, addr := openCodeRig(t)
	startOpenCode(t, r, addr, true)
	r.open(t)
	r.Wait(t, "the session", 0, up)
	for i, allow := range []bool{true, false} {
		from := r.Mark()
		r.Deliver(t, false, fmt.Sprint("m", i), fmt.Sprintf("@@shell touch it%d\n@@say over", i))
		o := r.Wait(t, "the question", from, func(o team.Observation) bool { return o.Ask != nil })
		if o.Activity != team.Waiting || o.For != team.WaitPermission || o.Ask.Tool != "bash" || o.Ask.ToolUseID == "" || !strings.Contains(o.Ask.Description, "touch it") {
			t.Fatalf("asked %+v %+v", o, o.Ask)
		}
		if i == 0 { // the next supervisor finds the question
			r.Ch.Close()
			from = r.Mark()
			r.open(t)
			r.Wait(t, "the question again", from, func(q team.Observation) bool { return q.Ask != nil && q.Ask.ID == o.Ask.ID })
		}
		if err := r.Ch.Answer(t.Context(), team.Reply{ID: o.Ask.ID, For: o.Ask.For, Allow: allow, Feedback: "no"}); err != nil {
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
// that comes too late: the server is asked for its open requests after others.
func TestServerAnswerOverALostConnection(t *testing.T) {
	t.Parallel()
	r, addr := openCodeRig(t)
	server := startOpenCode(t, r, addr, true)
	s := newServer(r.facts, r.Answering(t))
	r.Use(t, s, nil)
	s.start()
	r.Wait(t, "the session", 0, up)
	from := r.Mark()
	r.Deliver(t, false, "m1", "@@shell touch it\n@@say over")
	o := r.Wait(t, "the question", from, func(o team.Observation) bool { return o.Ask != nil })
	from = r.Mark()
	r.Owes(o.Ask.ID, up)
	server.Drop()
	r.Wait(t, "idle", from, couriertest.Is(team.Idle))
	if !r.Exists("it") {
		t.Error("the command did not run")
	}
}

func TestServerInterrupt(t *testing.T) {
	t.Parallel()
	r, addr := openCodeRig(t)
	startOpenCode(t, r, addr, false)
	r.open(t)
	r.Wait(t, "the session", 0, up)
	from := r.Mark()
	r.Deliver(t, false, "m1", "@@shell sleep 600\n@@say never")
	r.Wait(t, "working", from, couriertest.Is(team.Working))
	r.Asked(t, "never")
	if err := r.Ch.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Wait(t, "idle", from, couriertest.Is(team.Idle))
}

// The wait for the end of a limit counts from its first report, also for the next supervisor, and
// ends when the turn is aborted.
func TestServerLimit(t *testing.T) {
	t.Parallel()
	r, addr := openCodeRig(t)
	startOpenCode(t, r, addr, false)
	r.open(t)
	r.Wait(t, "the session", 0, up)
	from := r.Mark()
	r.Deliver(t, false, "m1", "@@fail 429 usage limit reached")
	o := r.Wait(t, "the limit", from, couriertest.Is(team.Limited))
	r.Ch.Close()
	from = r.Mark()
	r.open(t)
	again := r.Wait(t, "the limit again", from, couriertest.Is(team.Limited))
	if !again.Until.Equal(o.Until) || !again.Began().Equal(o.Began()) || !again.At.After(o.At) {
		t.Errorf("since %s until %s, then since %s until %s", o.Began(), o.Until, again.Began(), again.Until)
	}
	if !r.Ch.(*server).Retries() {
		t.Error("it does not say that it waits")
	}
	from = r.Mark()
	if err := r.Ch.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Ch.(*server).Retries() {
		t.Error("it says that it waits")
	}
	r.Wait(t, "idle", from, couriertest.Is(team.Idle))
}

// A starting server accepts the request for its events and never answers.
func TestServerThatNeverAnswersAtFirst(t *testing.T) {
	t.Parallel()
	r, addr := openCodeRig(t)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			asked <- c
		}
	}()
	r.open(t)
	deaf := <-asked
	defer deaf.Close()
	l.Close()
	startOpenCode(t, r, addr, false)
	r.Wait(t, "the session", 0, up)
}

// A wrong password is no observation about the agent.
func TestServerRefuses(t *testing.T) {
	t.Parallel()
	r, addr := openCodeRig(t)
	startOpenCode(t, r, addr, false)
	r.facts.Link.Secret = "wrong"
	r.open(t)
	if out := r.Deliver(t, false, "m1", "x"); out[0].State != team.Held {
		t.Errorf("got %+v", out[0])
	}
	if err := r.Ch.Interrupt(t.Context()); !team.IsCode(err, team.CodeUnavailable) {
		t.Errorf("interrupt: %v", err)
	}
}

func TestMessageIDsAscend(t *testing.T) {
	t.Parallel()
	// As opencode 1.18.33 made one at 1795260403.872 s: msg_1fddbd09b001gtYVWth0AV7Bzn
	at := time.UnixMilli(1795260403867)
	for _, c := range []struct{ last, want string }{
		{"", "1fddbd09b000"}, {"1fddbd09a003", "1fddbd09b000"}, {"1fddbd09b000", "1fddbd09b001"}, {"1fddbd09bfff", "1fddbd09c000"}, {"xyz", "1fddbd09b000"},
	} {
		if got := messageStamp(at, c.last); got != c.want {
			t.Errorf("after %q: got %s, want %s", c.last, got, c.want)
		}
	}
	if a, b := messageHash("one"), messageHash("two"); len(a) != hashLen || a == b {
		t.Errorf("hashes %q, %q", a, b)
	}
}

func TestServerSoak(t *testing.T) {
	t.Parallel()
	messages := 500
	if testing.Short() {
		messages = 160 // the connection is lost twice
	}
	r, addr := openCodeRig(t)
	s := startOpenCode(t, r, addr, false)
	r.open(t)
	r.Wait(t, "the session", 0, up)
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
