package courier

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/adapter"
	"github.com/teamctl/teamctl/internal/fakecli"
	"github.com/teamctl/teamctl/team"
)

// envACP makes the test program an agent: the model's address is its value.
const envACP = "COURIER_TEST_ACP"

// serveACP is the agent that the test program becomes.
func serveACP(model string) {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	fakecli.ServeACP(context.Background(), model, dir, os.Getenv("ASK") != "", os.Stdin, os.Stdout)
}

// safeBuffer is what several goroutines write to.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// acpRig is the rig of an agent on the protocol; permit may be nil.
func acpRig(t *testing.T, permit func(context.Context, team.Ask) (team.Reply, error)) (*rig, *ACP, *safeBuffer) {
	t.Helper()
	r := newRig(t, adapter.Link{Agent: "acp"})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), envACP+"="+r.model.URL)
	if permit != nil {
		env = append(env, "ASK=1")
	}
	out := &safeBuffer{}
	a, err := StartACP(t.Context(), ACPIn{Argv: []string{exe}, Env: env, Dir: r.dir, Out: out, Err: os.Stderr, Permit: permit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return r, a, out
}

func TestACPTurns(t *testing.T) {
	r, a, out := acpRig(t, nil)
	signs := 0
	for i := range 3 {
		reason, err := a.Prompt(t.Context(), fmt.Sprintf("@@shell echo x > f%d\n@@say answer %d", i, i), func() { signs++ })
		if err != nil || reason != "end_turn" || signs != i+1 || !exists(r.dir, fmt.Sprint("f", i)) {
			t.Fatalf("turn %d: %q, %v, %d signs", i, reason, err, signs)
		}
	}
	if want := "* Bash\nanswer 0\n* Bash\nanswer 1\n* Bash\nanswer 2\n"; out.String() != want {
		t.Errorf("printed %q", out.String())
	}
}

func TestACPOneAtATimeAndCancel(t *testing.T) {
	r, a, _ := acpRig(t, nil)
	begun := make(chan struct{})
	over := make(chan string, 1)
	go func() {
		reason, err := a.Prompt(t.Context(), "@@shell sleep 600", func() { close(begun) })
		over <- fmt.Sprint(reason, " ", err)
	}()
	<-begun
	if _, err := a.Prompt(t.Context(), "a second", func() {}); !team.IsCode(err, team.CodeConflict) {
		t.Fatalf("a second prompt: %v", err)
	}
	if err := a.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-over; got != "cancelled <nil>" {
		t.Fatalf("got %q", got)
	}
	if reason, err := a.Prompt(t.Context(), "@@say after", func() {}); err != nil || reason != "end_turn" {
		t.Fatalf("a turn after it: %q, %v", reason, err)
	}
	if n := r.model.Arrivals("a second"); n != 0 {
		t.Errorf("the refused prompt came %d times", n)
	}
}

func TestACPPermission(t *testing.T) {
	allow := false
	r, a, _ := acpRig(t, func(_ context.Context, ask team.Ask) (team.Reply, error) {
		if ask.ID == "" || ask.Tool != "execute" || !contains(string(ask.Input), "touch") {
			return team.Reply{}, fmt.Errorf("asked %+v", ask)
		}
		return team.Reply{ID: ask.ID, Allow: allow}, nil
	})
	for _, allow = range []bool{false, true} {
		if _, err := a.Prompt(t.Context(), "@@shell touch it", func() {}); err != nil {
			t.Fatal(err)
		}
		if exists(r.dir, "it") != allow {
			t.Errorf("allowed %v, but the command ran otherwise", allow)
		}
	}
}

// U26: what a turn asks for ends with it, whoever was to answer.
func TestACPCancelEndsItsRequest(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan error, 1)
	r, a, _ := acpRig(t, func(ctx context.Context, ask team.Ask) (team.Reply, error) {
		close(asked)
		<-ctx.Done()
		ended <- ctx.Err()
		return team.Reply{}, ctx.Err()
	})
	over := make(chan string, 1)
	go func() {
		reason, err := a.Prompt(t.Context(), "@@shell touch it", func() {})
		over <- fmt.Sprint(reason, " ", err)
	}()
	<-asked
	if err := a.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the request goes on")
	}
	if got := <-over; got != "cancelled <nil>" || exists(r.dir, "it") {
		t.Errorf("the turn: %q", got)
	}
}

// An agent that is killed ends its turn with an error, and what says Done.
func TestACPAgentDies(t *testing.T) {
	_, a, _ := acpRig(t, nil)
	begun := make(chan struct{})
	over := make(chan error, 1)
	go func() {
		_, err := a.Prompt(t.Context(), "@@shell sleep 600", func() { close(begun) })
		over <- err
	}()
	<-begun
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err == nil {
		t.Fatal("the turn of a dead agent ended well")
	}
	select {
	case <-a.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("it is not done")
	}
}

func TestACPRefusals(t *testing.T) {
	for _, argv := range [][]string{{"/nonexistent/agent"}, {"true"}, {"echo", "hello"}} {
		_, err := StartACP(t.Context(), ACPIn{Argv: argv, Dir: t.TempDir()})
		if !team.IsCode(err, team.CodeUnavailable) || team.ReasonOf(err) != "acp" || team.HintOf(err) == "" {
			t.Errorf("%v: %v", argv, err)
		}
	}
}
