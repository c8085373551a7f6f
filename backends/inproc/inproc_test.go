package inproc

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/backendtest"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// owner is the environment variable that makes the test binary a supervisor to
// be killed.
const owner = "INPROC_TEST_BUNDLE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(owner); dir != "" {
		os.Exit(ownAndWait(team.Bundle(dir)))
	}
	if status, handled := backendtest.Main(); handled {
		os.Exit(status)
	}
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// A goroutine has no process, signal or terminal of its own, which is declared
// to the suite.
func TestExercise(t *testing.T) {
	backendtest.Exercise(t, backendtest.Capabilities{}, func(t *testing.T) *backendtest.Rig {
		return &backendtest.Rig{
			Layout: team.Home{Dir: t.TempDir()}.Team("demo"),
			Open: func(t *testing.T) backends.Backend {
				b := New(Options{Run: backendtest.FakeRun, LeakAfter: patience})
				t.Cleanup(func() { _ = b.Close() })
				return b
			},
		}
	})
}

const patience = 5 * time.Minute

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func launch(t *testing.T, b team.Bundle, what ...string) backends.Launch {
	t.Helper()
	return backends.Launch{
		Team: "t", Agent: "a", Generation: team.NewUUID(), Argv: what, Bundle: b, Dir: t.TempDir(),
		Env: []string{"PATH=" + os.Getenv("PATH"), team.EnvGen + "=stale"},
	}
}

func bundleOf(t *testing.T) team.Bundle {
	t.Helper()
	return team.Bundle(filepath.Join(t.TempDir(), "bundle"))
}

type status int

func (s status) Error() string { return fmt.Sprintf("status %d", int(s)) }
func (s status) ExitCode() int { return int(s) }

// run returns an agent whose behaviour is the first word of its command.
func run(release <-chan struct{}) func(context.Context, backends.Launch, io.Writer) error {
	return func(ctx context.Context, l backends.Launch, out io.Writer) error {
		_, _ = fmt.Fprintf(out, "begins as %s\n", l.Argv[0])
		switch l.Argv[0] {
		case "ok":
			return nil
		case "fails":
			return errors.New("it did not work")
		case "125":
			return fmt.Errorf("wrapped: %w", status(125))
		case "panics":
			panic("the agent's own mistake")
		case "goexit":
			runtime.Goexit()
		case "deaf":
			<-release
			return nil
		case "leaves":
			c := exec.Command("sleep", "1000")
			c.Env = l.Env
			if err := c.Start(); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(out, "pid %d\n", c.Process.Pid)
			return c.Process.Release()
		case "leaves deaf":
			c := exec.Command("sh", "-c", `trap "" TERM; echo up; exec sleep 1000`)
			c.Env = l.Env
			r, err := c.StdoutPipe()
			if err == nil {
				err = c.Start()
			}
			if err != nil {
				return err
			}
			_, _ = io.CopyN(out, r, int64(len("up\n")))
			<-ctx.Done()
			_ = r.Close()
			return c.Process.Release()
		default:
			_, _ = fmt.Fprintln(out, "idle")
			<-ctx.Done()
			_, _ = fmt.Fprintln(out, "tidies up")
			return context.Cause(ctx)
		}
		return nil
	}
}

func open(t *testing.T, release <-chan struct{}) *Backend {
	t.Helper()
	leak := patience
	if release != nil { // the agents of the test ignore cancellation
		leak = 50 * time.Millisecond
	}
	b := New(Options{Run: run(release), LeakAfter: leak})
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func exit(t *testing.T, a backends.Attached) backends.Exit {
	t.Helper()
	select {
	case <-a.Exited():
		return a.Exit()
	case <-time.After(patience):
		t.Fatal("no exit")
		panic("unreachable")
	}
}

func TestExits(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	at := bundleOf(t)
	for _, c := range []struct {
		what   string
		code   int
		reason string
		log    string
	}{
		{"ok", 0, "", "begins as ok"},
		{"fails", 1, "it did not work", ""},
		{"125", 125, "wrapped: status 125", ""},
		{"panics", 2, "panic: the agent's own mistake", "inproc_test.go"},
		{"goexit", 1, "runtime.Goexit", ""},
	} {
		l := launch(t, at, c.what)
		h, err := b.Start(within(t), l)
		if err != nil {
			t.Fatal(err)
		}
		e := exit(t, h)
		if !e.Known || e.Code != c.code || !strings.Contains(e.Reason, c.reason) || (c.reason == "") != (e.Reason == "") ||
			e.Generation != l.Generation || e.At.IsZero() || e.Success() != (c.code == 0) || e.Done() != (c.code == 125) {
			t.Errorf("%s: exit = %+v", c.what, e)
		}
		if on, err := bundle.ReadExit(at, l.Generation); err != nil || on.Code != c.code || on.Reason != e.Reason {
			t.Errorf("%s: exit.json = %+v, %v", c.what, on, err)
		}
		if text, err := os.ReadFile(at.Log()); err != nil || !strings.Contains(string(text), c.log) {
			t.Errorf("%s: log %q, %v; want %q", c.what, text, err, c.log)
		}
		if h.Pane().PaneID != team.PaneInProcess || h.Pane().Backend != b.Name() {
			t.Errorf("pane = %+v", h.Pane())
		}
		if err := h.Stop(within(t), time.Second); err != nil {
			t.Errorf("%s: stop after the exit: %v", c.what, err)
		}
		if err := h.Dispose(within(t)); err != nil {
			t.Error(err)
		}
		for verb, err := range map[string]error{
			"type": h.TypeText(within(t), "x", true), "interrupt": h.Interrupt(within(t)), "resize": h.Resize(within(t), 1, 1),
		} {
			if !team.IsCode(err, team.CodeNotFound) {
				t.Errorf("%s: %s after the exit: %v; want not found", c.what, verb, err)
			}
		}
	}
}

func TestStartStopCapture(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	at := bundleOf(t)
	l := launch(t, at, "idle")
	h, err := b.Start(within(t), l)
	if err != nil {
		t.Fatal(err)
	}
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	if p, err := bundle.ReadProc(at, l.Generation); err != nil || p.Agent != self || p.Shim != self || !p.StartedAt.Equal(h.Proc().StartedAt) {
		t.Errorf("proc.json = %+v, %v", p, err)
	}
	if p, err := bundle.ReadPane(at, l.Generation); err != nil || p != h.Pane() {
		t.Errorf("pane.json = %+v, %v", p, err)
	}
	if got := h.Launch().Env; strings.Join(got[len(got)-1:], "") != team.EnvGen+"="+l.Generation {
		t.Errorf("environment %q", got)
	}
	if _, err := b.Start(within(t), launch(t, at, "idle")); !team.IsCode(err, team.CodeConflict) || team.ReasonOf(err) != "already_running" {
		t.Errorf("second start: %v; want a conflict", err)
	}
	if on, err := bundle.ReadLaunch(at, l.Generation); err != nil {
		t.Errorf("the refused start replaced launch.json: %+v, %v", on, err)
	}
	if runs, err := bundle.Running(at); err != nil || !runs { // no shim may start it either
		t.Errorf("run.lock: %v, %v", runs, err)
	}
	again, err := b.Adopt(within(t), at)
	if err != nil || again.Proc() != h.Proc() {
		t.Errorf("adopt of one's own: %v, %v", again, err)
	}
	for bytes.Count(mustRead(t, at.Log()), []byte("idle")) < 2 { // two lines have it
		runtime.Gosched()
	}
	if s, err := h.Capture(within(t), 0); err != nil || s != "begins as idle\nidle" {
		t.Errorf("capture: %q, %v", s, err)
	}
	if err := h.Dispose(within(t)); !team.IsCode(err, team.CodeConflict) {
		t.Errorf("dispose of a running one: %v", err)
	}
	if err := h.TypeText(within(t), "x", true); team.ReasonOf(err) != "no_terminal" {
		t.Errorf("type: %v", err)
	}
	h.Detach()
	if err := h.Stop(within(t), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if e := exit(t, h); !e.Known || e.Success() || !strings.HasPrefix(e.Reason, ReasonStopped) || !strings.HasSuffix(e.Tail, "tidies up") {
		t.Errorf("exit = %+v", e)
	}
	if _, err := h.Capture(within(t), 0); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("capture after the exit: %v", err)
	}
	if h, err = b.Start(within(t), launch(t, at, "ok")); err != nil {
		t.Fatal(err)
	}
	exit(t, h)
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	p, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Processes left by an agent take time to end, but are not a leak.
func TestLeftoversAreNoLeak(t *testing.T) {
	t.Parallel()
	// Less than it takes to end what was left, and enough for the agent to obey.
	b := New(Options{Run: run(nil), LeakAfter: leftoverGrace / 2})
	t.Cleanup(func() { _ = b.Close() })
	at := bundleOf(t)
	h, err := b.Start(within(t), launch(t, at, "leaves deaf"))
	if err != nil {
		t.Fatal(err)
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for ctx := within(t); ; {
		if text, _ := os.ReadFile(at.Log()); strings.Contains(string(text), "up\n") {
			break
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatal("it has started nothing")
		}
	}
	if err := h.Stop(within(t), 10*time.Millisecond); err != nil {
		t.Errorf("stop: %v", err)
	}
	if e := exit(t, h); e.Leftover != 1 || e.Reason != ReasonStopped {
		t.Errorf("exit = %+v", e)
	}
	if left := proc.ByGeneration(h.Launch().Generation); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestFault15LeakedIsNeverDoubled checks that an agent that ignores its
// cancellation prevents another start until it ends.
func TestFault15LeakedIsNeverDoubled(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	b := open(t, release)
	at := bundleOf(t)
	h, err := b.Start(within(t), launch(t, at, "deaf"))
	if err != nil {
		t.Fatal(err)
	}
	err = h.Stop(within(t), 10*time.Millisecond)
	if !team.IsCode(err, team.CodeTimeout) || team.ReasonOf(err) != ReasonLeaked {
		t.Errorf("stop: %v; want leaked", err)
	}
	select {
	case <-h.Exited():
		t.Error("it is told to have exited")
	default:
	}
	if _, err := b.Start(within(t), launch(t, at, "ok")); !team.IsCode(err, team.CodeConflict) || team.ReasonOf(err) != ReasonLeaked {
		t.Errorf("start beside a leaked one: %v; want a conflict, leaked", err)
	}
	other := open(t, nil) // not through another instance either
	if _, err := other.Start(within(t), launch(t, at, "ok")); !team.IsCode(err, team.CodeConflict) {
		t.Errorf("start by another: %v; want a conflict", err)
	}
	if err := b.Close(); team.ReasonOf(err) != ReasonLeaked {
		t.Errorf("close: %v; want leaked", err)
	}
	close(release)
	if e := exit(t, h); e.Reason != ReasonStopped {
		t.Errorf("exit = %+v", e)
	}
	h, err = other.Start(within(t), launch(t, at, "ok"))
	if err != nil {
		t.Fatal(err)
	}
	exit(t, h)
}

// TestCloseIsNotAnExit checks that the next supervisor starts the member again.
func TestCloseIsNotAnExit(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	at := bundleOf(t)
	l := launch(t, at, "idle")
	h, err := b.Start(within(t), l)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if e := exit(t, h); e.Known || e.Success() || e.Reason != ReasonOwnerGone {
		t.Errorf("exit = %+v; want unknown", e)
	}
	if _, err := b.Start(within(t), l); !team.IsCode(err, team.CodeUnavailable) {
		t.Errorf("start after close: %v", err)
	}
	if _, err := open(t, nil).Adopt(within(t), at); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("adopt: %v; want not found", err)
	}
	if e, err := bundle.ReadExit(at, l.Generation); err != nil || e.Reason != ReasonOwnerGone {
		t.Errorf("exit.json = %+v, %v", e, err)
	}
}

// TestRecordIsNotReplaced adopts a generation of another process whose record cannot be read.
func TestRecordIsNotReplaced(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	at := bundleOf(t)
	l := launch(t, at, "ok")
	if err := errors.Join(bundle.WriteLaunch(l), bundle.WriteExit(at, backends.Exit{Generation: l.Generation, Known: true, Code: 7})); err != nil {
		t.Fatal(err)
	}
	hidden := at.Exit() + ".hidden"
	if err := errors.Join(os.Rename(at.Exit(), hidden), os.Symlink(at.Exit(), at.Exit())); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Adopt(within(t), at); err == nil || team.IsCode(err, team.CodeNotFound) {
		t.Errorf("adopt without the record: %v", err)
	}
	if err := os.Rename(hidden, at.Exit()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Adopt(within(t), at); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("adopt: %v; want not found", err)
	}
	if e, err := bundle.ReadExit(at, l.Generation); err != nil || e.Code != 7 {
		t.Errorf("exit.json = %+v, %v", e, err)
	}
}

func TestLeftoversAreEnded(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	at := bundleOf(t)
	h, err := b.Start(within(t), launch(t, at, "leaves"))
	if err != nil {
		t.Fatal(err)
	}
	if e := exit(t, h); !e.Success() || e.Leftover != 1 {
		t.Errorf("exit = %+v; want one leftover", e)
	}
	if left := proc.ByGeneration(h.Launch().Generation); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// ownAndWait is a supervisor with one agent that has started a command.
func ownAndWait(at team.Bundle) int {
	b := New(Options{Run: func(ctx context.Context, l backends.Launch, out io.Writer) error {
		c := exec.Command("sleep", "1000")
		c.Env = l.Env
		if err := c.Start(); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(os.Stdout, "up")
		<-ctx.Done()
		return nil
	}})
	_, err := b.Start(context.Background(), backends.Launch{
		Team: "t", Agent: "a", Generation: team.NewUUID(), Argv: []string{"x"}, Bundle: at, Env: []string{"PATH=" + os.Getenv("PATH")},
	})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stdout, err)
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// TestOwnerKilled kills the supervisor with SIGKILL; the next one starts the
// member again.
func TestOwnerKilled(t *testing.T) {
	t.Parallel()
	at := bundleOf(t)
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), owner+"="+string(at))
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // of a failed test; otherwise nothing is left
		_ = c.Process.Kill()
		_ = c.Wait()
		if l, err := bundle.ReadLaunch(at, ""); err == nil {
			_, _ = proc.KillTree(context.Background(), nil, l.Generation, 0)
		}
	})
	buf := make([]byte, 100)
	if n, err := out.Read(buf); err != nil || string(buf[:n]) != "up\n" {
		t.Fatalf("the supervisor says %q, %v", buf[:n], err)
	}
	b := open(t, nil)
	if _, err := b.Adopt(within(t), at); !team.IsCode(err, team.CodeConflict) {
		t.Errorf("adopt of a living supervisor's: %v; want a conflict", err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	l, err := bundle.ReadLaunch(at, "")
	if err != nil {
		t.Fatal(err)
	}
	if left := proc.ByGeneration(l.Generation); len(left) != 1 {
		t.Fatalf("its command: %v", left)
	}
	if _, err := b.Adopt(within(t), at); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("adopt: %v; want not found", err)
	}
	e, err := bundle.ReadExit(at, l.Generation)
	if err != nil || e.Known || e.Success() || e.Reason != ReasonOwnerGone || e.Leftover != 1 {
		t.Errorf("exit.json = %+v, %v; want unknown with one leftover", e, err)
	}
	if left := proc.ByGeneration(l.Generation); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	h, err := b.Start(within(t), launch(t, at, "ok"))
	if err != nil {
		t.Fatal(err)
	}
	if e := exit(t, h); !e.Success() {
		t.Errorf("exit = %+v", e)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	at := bundleOf(t)
	for name, l := range map[string]backends.Launch{
		"no generation":     {Agent: "a", Bundle: at},
		"a relative bundle": {Agent: "a", Generation: "g", Bundle: "x"},
	} {
		if _, err := b.Start(within(t), l); !team.IsCode(err, team.CodeInvalid) {
			t.Errorf("%s: %v; want invalid", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.Start(ctx, launch(t, at, "ok")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := New(Options{}).Check(within(t)); !team.IsCode(err, team.CodeUnavailable) {
		t.Errorf("check without an agent: %v", err)
	}
	if _, err := b.Adopt(within(t), at); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("adopt of nothing: %v", err)
	}
	l := launch(t, at, "ok")
	if err := bundle.WriteLaunch(l); err != nil {
		t.Fatal(err)
	}
	if err := bundle.WritePane(at, team.Pane{Generation: l.Generation, Backend: "tmux"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Adopt(within(t), at); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("adopt of another backend's: %v", err)
	}
}
