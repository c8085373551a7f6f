package acp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"
	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/internal/fakecli"
	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) {
	if model := os.Getenv(envACP); model != "" {
		serveACP(model)
		return
	}
	goleak.VerifyTestMain(m)
}

// envACP turns the test program into an agent: its value is the model's address.
const envACP = "COURIER_TEST_ACP"

// serveACP runs the test program as an agent.
func serveACP(model string) {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	in := io.Reader(os.Stdin)
	if file := map[string]*os.File{"stdin": os.Stdin, "stdout": os.Stdout}[os.Getenv(envCloses)]; file != nil {
		in = closing(file)
	}
	fakecli.ServeACP(context.Background(), model, dir, os.Getenv("ASK") != "", in, os.Stdout)
}

// envCloses names the end of the connection that the agent closes, and lives on: its standard output
// when it gets a prompt, its standard input once it has a session.
const envCloses = "COURIER_TEST_CLOSES"

// closing returns the standard input of an agent that closes a file.
func closing(file *os.File) io.Reader {
	r, w := io.Pipe()
	go func() {
		method := map[*os.File]string{os.Stdin: `"session/new"`, os.Stdout: `"session/prompt"`}[file]
		for lines := bufio.NewReader(os.Stdin); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				_ = w.Close()
				return
			}
			last := bytes.Contains(line, []byte(method))
			if last {
				_ = file.Close()
			}
			if last && file == os.Stdout {
				continue // to the end
			}
			_, _ = w.Write(line)
			if last {
				return
			}
		}
	}()
	return r
}

// safeBuffer is a buffer for several goroutines.
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

// acpRig returns the rig of an agent on the protocol; permit may be nil.
func acpRig(t *testing.T, permit func(context.Context, team.Ask) (team.Reply, error)) (*couriertest.Rig, *Agent, *safeBuffer) {
	t.Helper()
	r := couriertest.New(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), envACP+"="+r.Model.URL)
	if permit != nil {
		env = append(env, "ASK=1")
	}
	out := &safeBuffer{}
	a, err := Start(t.Context(), In{Argv: []string{exe}, Env: env, Dir: r.Dir, Out: out, Err: os.Stderr, Permit: permit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return r, a, out
}

func TestACPTurns(t *testing.T) {
	t.Parallel()
	r, a, out := acpRig(t, nil)
	signs := 0
	for i := range 3 {
		reason, err := a.Prompt(t.Context(), fmt.Sprintf("@@shell echo x > f%d\n@@say answer %d", i, i), func() { signs++ })
		if err != nil || reason != "end_turn" || signs != i+1 || !r.Exists(fmt.Sprint("f", i)) {
			t.Fatalf("turn %d: %q, %v, %d signs", i, reason, err, signs)
		}
	}
	if want := "* Bash\nanswer 0\n* Bash\nanswer 1\n* Bash\nanswer 2\n"; out.String() != want {
		t.Errorf("printed %q", out.String())
	}
}

// The usage of turns is added up, and a limit differs from other errors.
func TestACPUsageAndLimits(t *testing.T) {
	t.Parallel()
	_, a, _ := acpRig(t, nil)
	var last team.Usage
	for range 2 {
		if _, err := a.Prompt(t.Context(), "@@shell echo hi\n@@say done", func() {}); err != nil {
			t.Fatal(err)
		}
		u := a.Usage()
		if u.InputTokens <= last.InputTokens || u.OutputTokens <= last.OutputTokens {
			t.Errorf("after %+v it has used %+v", last, u)
		}
		last = u
	}
	began := false
	_, err := a.Prompt(t.Context(), "@@fail 429 You've hit your usage limit. Try again in 3 days.", func() { began = true })
	var limit *team.LimitReached
	if !errors.As(err, &limit) || began || time.Until(limit.Until) < 71*time.Hour {
		t.Fatalf("%v, began %v", err, began)
	}
	if _, err := a.Prompt(t.Context(), "@@fail 500 it broke", func() {}); err == nil || errors.As(err, &limit) {
		t.Errorf("another error: %v", err)
	}
	if _, err := a.Prompt(t.Context(), "@@say after", func() {}); err != nil {
		t.Error(err)
	}
}

// An agent that repeats the prompt has it in its conversation, whatever becomes of the turn; a
// list of commands is no such sign.
func TestACPSignsOfAPrompt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		update acp.SessionUpdate
		sign   bool
	}{
		{acp.UpdateUserMessageText("the prompt"), true},
		{acp.UpdateAgentMessageText("an answer"), true},
		{acp.SessionUpdate{AvailableCommandsUpdate: &acp.SessionAvailableCommandsUpdate{}}, false},
	} {
		signs := 0
		a := &Agent{in: In{Out: io.Discard}, begun: func() { signs++ }}
		if err := (acpClient{a}).SessionUpdate(t.Context(), acp.SessionNotification{Update: c.update}); err != nil || (signs == 1) != c.sign {
			t.Errorf("%+v: %d signs, %v", c.update, signs, err)
		}
	}
}

func TestACPLimitWords(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		err   error
		is    bool
		until time.Time
	}{
		{&acp.RequestError{Code: 429, Message: "Rate limit exceeded. Try again later."}, true, time.Time{}}, // Gemini CLI 0.61
		{&acp.RequestError{Code: 429, Message: "slow down", Data: map[string]any{"retryAfter": 90.0}}, true, now.Add(90 * time.Second)},
		{&acp.RequestError{Code: 429, Message: "slow down", Data: map[string]any{"details": []any{map[string]any{"retryDelay": "34s"}}}}, true, now.Add(34 * time.Second)},
		{&acp.RequestError{Code: -32603, Message: "Internal error", Data: map[string]any{"details": "You've hit your usage limit, resets 3pm"}}, true, now.Add(3 * time.Hour)},
		{&acp.RequestError{Code: -32603, Message: "usage limit reached", Data: map[string]any{"resets_at": float64(now.Add(time.Hour).Unix())}}, true, now.Add(time.Hour)},
		{&acp.RequestError{Code: -32603, Message: "quota exceeded", Data: map[string]any{"resetAt": "2026-03-02T00:00:00Z"}}, true, now.Add(12 * time.Hour)},
		{&acp.RequestError{Code: -32603, Message: "Internal error", Data: map[string]any{"details": "no such model"}}, false, time.Time{}},
		{&acp.RequestError{Code: -32000, Message: "Authentication required"}, false, time.Time{}},
		{errors.New("usage limit reached"), false, time.Time{}}, // not an error of the protocol
	} {
		got := limitOf(fmt.Errorf("prompt: %w", tt.err), now)
		if (got != nil) != tt.is || got != nil && (!got.Until.Equal(tt.until) || got.Words == "") {
			t.Errorf("%v: %+v", tt.err, got)
		}
	}
}

// Agents report usage in two ways: by the protocol, and Gemini CLI in its own field.
func TestACPCounts(t *testing.T) {
	t.Parallel()
	a := &Agent{}
	a.count(acp.PromptResponse{Meta: map[string]any{"quota": map[string]any{"token_count": map[string]any{"input_tokens": 7, "output_tokens": 2}}}})
	a.count(acp.PromptResponse{Usage: &acp.Usage{InputTokens: 10, OutputTokens: 3, CachedReadTokens: acp.Ptr(5), ThoughtTokens: acp.Ptr(4)}})
	a.costs(&acp.Cost{Amount: 0.5, Currency: "USD"})
	a.costs(&acp.Cost{Amount: 9, Currency: "EUR"})
	if got, want := a.Usage(), (team.Usage{InputTokens: 22, OutputTokens: 9, CachedTokens: 5, CostUSD: 0.5}); got != want {
		t.Errorf("used %+v, not %+v", got, want)
	}
}

func TestACPOneAtATimeAndCancel(t *testing.T) {
	t.Parallel()
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
	if n := r.Model.Arrivals("a second"); n != 0 {
		t.Errorf("the refused prompt came %d times", n)
	}
}

func TestACPPermission(t *testing.T) {
	t.Parallel()
	allow := false
	r, a, _ := acpRig(t, func(_ context.Context, ask team.Ask) (team.Reply, error) {
		if ask.ID == "" || ask.Tool != "execute" || !strings.Contains(string(ask.Input), "touch") {
			return team.Reply{}, fmt.Errorf("asked %+v", ask)
		}
		return team.Reply{ID: ask.ID, Allow: allow}, nil
	})
	for _, allow = range []bool{false, true} {
		if _, err := a.Prompt(t.Context(), "@@shell touch it", func() {}); err != nil {
			t.Fatal(err)
		}
		if r.Exists("it") != allow {
			t.Errorf("allowed %v, but the command ran otherwise", allow)
		}
	}
}

// The requests of a turn end with the turn.
func TestACPCancelEndsItsRequest(t *testing.T) {
	t.Parallel()
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
	if got := <-over; got != "cancelled <nil>" || r.Exists("it") {
		t.Errorf("the turn: %q", got)
	}
}

// An agent that is killed ends its turn with an error, and Done is closed.
func TestACPAgentDies(t *testing.T) {
	t.Parallel()
	_, a, _ := acpRig(t, nil)
	begun := make(chan struct{})
	over := make(chan error, 1)
	go func() { // with no child that would outlive it
		_, err := a.Prompt(t.Context(), "@@shell true\n@@sleep 1h\n@@say never", func() { close(begun) })
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
	case <-time.After(5 * time.Minute):
		t.Fatal("it is not done")
	}
}

// TestACPConnectionEnds checks that an agent which has closed an end of its connection, as each does
// that exits, is told from one that refuses a prompt: what it was given is given to the next one.
func TestACPConnectionEnds(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"stdin", "stdout"} {
		r := couriertest.New(t)
		a, err := Start(t.Context(), In{Argv: []string{exe}, Env: append(os.Environ(), envACP+"="+r.Model.URL, envCloses+"="+end), Dir: r.Dir, Err: os.Stderr})
		if err != nil {
			t.Fatal(err)
		}
		reason, err := a.Prompt(t.Context(), "@@say hello", func() {})
		if !team.IsCode(err, team.CodeUnavailable) {
			t.Errorf("%s: %q, %v", end, reason, err)
		}
		select {
		case <-a.Done():
		default:
			t.Errorf("%s: not done after %v", end, err)
		}
		_ = a.Close()
	}
}

func TestACPRefusals(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{{"/nonexistent/agent"}, {"true"}, {"echo", "hello"}} {
		_, err := Start(t.Context(), In{Argv: argv, Dir: t.TempDir()})
		if !team.IsCode(err, team.CodeUnavailable) || team.ReasonOf(err) != "acp" || team.HintOf(err) == "" {
			t.Errorf("%v: %v", argv, err)
		}
	}
}
