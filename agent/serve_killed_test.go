package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/ledger"
)

const (
	envServeDir  = "TEAMCTL_TEST_SERVE_DIR"
	envServeKill = "TEAMCTL_TEST_SERVE_KILL" // number of the step at which the child kills itself, or 0
)

// sideEffect returns a tool that appends a line to a file and a tool that reads the file.
func sideEffect(dir string) []llm.Tool {
	file := filepath.Join(dir, "lines")
	return []llm.Tool{
		echo("append", false, func(_ context.Context, input string) string {
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = fmt.Fprintln(f, input)
				err = errors.Join(err, f.Close())
			}
			return fmt.Sprint("appended ", input, " ", err)
		}),
		echo("look", true, func(context.Context, string) string {
			b, err := os.ReadFile(file)
			return fmt.Sprint("lines: ", len(bytes.Fields(b)) > 0, err == nil)
		}),
	}
}

// TestServeChild runs an agent in a process of its own. It is skipped unless another test starts
// it.
func TestServeChild(t *testing.T) {
	dir := os.Getenv(envServeDir)
	if dir == "" {
		t.Skip("started by TestServeKilledAtEveryStep")
	}
	kill, err := strconv.ParseInt(os.Getenv(envServeKill), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: dir}
	r.led = r.openLedger(false)
	m, err := r.led.Member(t.Context(), "dev")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{rig: r, tools: sideEffect(dir), m: m, texts: files{dir}}
	var n atomic.Int64
	ctx := WithSteps(t.Context(), func(string, string) {
		if n.Add(1) == kill {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	stop := s.startIn(ctx, ServeIn{First: "you are dev"})
	s.rested()
	_ = stop(errors.New("the child is through"))
	if err := os.WriteFile(filepath.Join(dir, "steps"), []byte(strconv.FormatInt(n.Load(), 10)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// life runs a child process and reports whether it killed itself.
func (s *served) life(kill int) (killed bool) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), os.Args[0], "-test.run=^TestServeChild$", "-test.count=1")
	cmd.Env = append(os.Environ(), envServeDir+"="+s.dir, envServeKill+"="+strconv.Itoa(kill))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		s.t.Fatalf("the child: %v\n%s", err, &out)
	}
	return false
}

// steps returns the number of steps of the last process, which records it before it exits.
func (s *served) steps() int {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, "steps"))
	if err != nil {
		s.t.Fatal(err)
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// TestServeKilledAtEveryStep kills an agent before and after each of its commits. The next
// process continues the same turn: the transcript contains the message and each answer once,
// every call has one result right after its answer, and every effect happened once or is reported
// as unknown.
func TestServeKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	every := 1
	if testing.Short() {
		every = 7
	}
	killedAtEveryStep(t, "@@call look {}\n@@call append {\"line\":\"one\"}\n@@call append {\"line\":\"two\"}\n@@say all done", every, nil)
}

// TestLongTextsKilledAtEveryStep does the same with a message and a call of more than 32 kB,
// which are stored in files: the tool gets the whole input, and the ledger a short text in its
// place.
func TestLongTextsKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	long, every := strings.Repeat("x", 40<<10), 1
	if testing.Short() {
		every = 11
	}
	killedAtEveryStep(t, "@@call append {\"line\":\"one\",\"more\":\""+long+"\"}\n@@call append {\"line\":\"two\"}\n@@say all done", every, func(s *served) {
		s.t.Helper()
		for _, e := range s.transcript() {
			if len(e.Content)+len(e.Raw)+len(e.Meta) > 32<<10 {
				s.t.Errorf("the ledger contains entry %d with %d bytes", e.Seq, len(e.Content)+len(e.Raw)+len(e.Meta))
			}
		}
		for _, j := range s.turns() {
			calls, err := s.led.ToolCalls(s.t.Context(), j.ID)
			if err != nil {
				s.t.Fatal(err)
			}
			for _, c := range calls {
				if len(c.Input) > 32<<10 {
					s.t.Errorf("the ledger contains the whole input of call %s", c.CallID)
				}
			}
		}
		lines, err := os.ReadFile(filepath.Join(s.dir, "lines"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			s.t.Fatal(err)
		}
		if strings.Contains(string(lines), "one") && !strings.Contains(string(lines), long) {
			s.t.Errorf("the tool was given a part: %.200s", lines)
		}
	})
}

// killedAtEveryStep sends a script to an agent and kills it, at another step for each run.
func killedAtEveryStep(t *testing.T, script string, every int, also func(*served)) {
	whole := newServed(t)
	whole.tell(script)
	if whole.life(0) {
		t.Fatal("the agent was killed without a request")
	}
	want := whole.shape()
	steps := whole.steps()
	for kill := 1; kill <= steps; kill += every {
		t.Run(strconv.Itoa(kill), func(t *testing.T) {
			t.Parallel()
			s := newServed(t)
			m := s.tell(script)
			s.life(kill)
			s.life(0)
			if got := s.shape(); got != want {
				t.Errorf("the transcript is\n%s\nwant\n%s\n%s", got, want, s.dump())
			}
			s.once(m)
			if also != nil {
				also(s)
			}
		})
	}
}

// shape returns the transcript without the texts that a kill may change: those of all entries but
// answers.
func (s *served) shape() string {
	var b strings.Builder
	for _, e := range s.transcript() {
		text := e.Content
		if e.Kind != ledger.EntryAssistant {
			text = ""
		}
		fmt.Fprintf(&b, "%s %s\n", e.Kind, text)
	}
	return b.String()
}

// once checks the invariants that hold after any kill.
func (s *served) once(m ledger.Message) {
	s.t.Helper()
	ds, err := s.led.Deliveries(s.t.Context(), m.ID)
	if err != nil || len(ds) != 1 || !accepted(ds[0].State) || !strings.Contains(ds[0].Evidence, "of the transcript") {
		s.t.Errorf("deliveries %+v: %v", ds, err)
	}
	if unread, err := s.box("dev").Unread(s.t.Context()); err != nil || len(unread) != 0 {
		s.t.Errorf("unread %v: %v", unread, err)
	}
	lines, err := os.ReadFile(filepath.Join(s.dir, "lines"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	lost := strings.Count(s.dump(), ledger.ResultLost[:40])
	for _, line := range []string{"one", "two"} {
		switch n := strings.Count(string(lines), line); {
		case n > 1:
			s.t.Errorf("%s was appended %d times", line, n)
		case n == 0 && lost == 0:
			s.t.Errorf("%s was not appended, and no result reports it as unknown:\n%s", line, s.dump())
		}
	}
	if lost > 1 {
		s.t.Errorf("%d calls are lost by one kill", lost)
	}
}
