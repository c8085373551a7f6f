package shim

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/holder"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "shim" {
		os.Exit(Main(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

func launch(t *testing.T, argv ...string) backends.Launch {
	t.Helper()
	l := backends.Launch{
		Team: "t", Agent: "a", Generation: team.NewUUID(), Argv: argv,
		Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: t.TempDir(), Bundle: team.Bundle(t.TempDir()),
	}
	if err := bundle.WriteLaunch(l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // a shim killed by the test leaves its control group
		if _, err := holder.EndRest(context.Background(), nil, l.Bundle, l.Generation, nil, 0); err != nil {
			t.Error(err)
		}
	})
	return l
}

// start runs a shim without a terminal.
func start(t *testing.T, l backends.Launch) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], "shim", "--bundle", string(l.Bundle), "--generation="+l.Generation)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGKILL)
		_ = c.Wait()
	})
	return c
}

func exitCode(t *testing.T, c *exec.Cmd) int {
	t.Helper()
	err := c.Wait()
	var e *exec.ExitError
	if err != nil && !errors.As(err, &e) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode()
}

func TestStatusAndEvents(t *testing.T) {
	t.Parallel()
	n, err := bundle.Listen(filepath.Join(t.TempDir(), "n"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Close() }()
	for _, c := range []struct {
		script string
		status int
	}{{"exit 0", 0}, {"exit 42", 42}, {"kill -9 $$", 137}} {
		l := launch(t, "sh", "-c", c.script)
		l.Notify = n.Path()
		if err := bundle.WriteLaunch(l); err != nil {
			t.Fatal(err)
		}
		events, cancel := n.Subscribe(l.Agent, l.Generation)
		if got := exitCode(t, start(t, l)); got != c.status {
			t.Errorf("%s: status %d; want %d", c.script, got, c.status)
		}
		for _, want := range []string{bundle.EventUp, bundle.EventExited} {
			select {
			case e := <-events:
				if e.Event != want || e.Generation != l.Generation {
					t.Errorf("%s: event %+v; want %s", c.script, e, want)
				}
			case <-time.After(5 * time.Minute):
				t.Fatalf("%s: no event %s", c.script, want)
			}
		}
		cancel()
		if _, ok := <-events; ok {
			t.Error("a cancelled subscription is open")
		}
		if runs, err := bundle.Running(l.Bundle); runs || err != nil {
			t.Errorf("run.lock after the exit: %v, %v", runs, err)
		}
		if m, _ := filepath.Glob(string(l.Bundle) + "/*.tmp"); len(m) > 0 {
			t.Errorf("litter: %v", m)
		}
	}
}

// A machine that shuts down sends SIGTERM to the shim and to its agent, in any order; many agents
// exit with status 0 then.
func TestTerminatedWithTheMachine(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"shim", "agent"} {
		l := launch(t, "sh", "-c", "trap 'echo told >>told' TERM; : >up; until [ -e end ]; do sleep 0.05; done; exit 0")
		c := start(t, l)
		until := func(ok func() bool) {
			t.Helper()
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for end := time.Now().Add(5 * time.Minute); !ok(); <-tick.C {
				if time.Now().After(end) {
					t.Fatal("it never happens")
				}
			}
		}
		told := func(n int) func() bool {
			return func() bool {
				b, err := os.ReadFile(filepath.Join(l.Dir, "told"))
				return err == nil && strings.Count(string(b), "\n") >= n
			}
		}
		var pr backends.Proc
		until(func() (ok bool) {
			var err error
			pr, err = bundle.ReadProc(l.Bundle, l.Generation)
			return err == nil && exists(filepath.Join(l.Dir, "up"))
		})
		n := 1 // the shim passes on what it is sent
		if first == "agent" {
			if err := proc.Signal(pr.Agent, syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			until(told(1))
			n = 2
		}
		if err := proc.Signal(pr.Shim, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		until(told(n))
		if err := os.WriteFile(filepath.Join(l.Dir, "end"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := exitCode(t, c); got != 0 {
			t.Errorf("%s first: status %d", first, got)
		}
		if e, err := bundle.ReadExit(l.Bundle, l.Generation); err != nil || !e.Known || e.Code != 0 || e.Reason != backends.ReasonShimTerminated {
			t.Errorf("%s first: %+v, %v", first, e, err)
		}
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func TestOneGeneration(t *testing.T) {
	t.Parallel()
	l := launch(t, "sh", "-c", "exec sleep 1000")
	c := start(t, l)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := bundle.ReadProc(l.Bundle, l.Generation); err == nil {
			break
		}
		<-tick.C
	}
	if runs, err := bundle.Running(l.Bundle); !runs || err != nil {
		t.Errorf("run.lock: %v, %v; want held", runs, err)
	}
	second := exec.Command(os.Args[0], "shim", "--bundle", string(l.Bundle), "--generation", l.Generation)
	out, err := second.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another generation of this member is running") {
		t.Errorf("a second shim: %v, %s", err, out)
	}
	stale := exec.Command(os.Args[0], "shim", "--bundle", string(l.Bundle), "--generation", "other")
	if out, err := stale.CombinedOutput(); err == nil || !strings.Contains(string(out), "this start was abandoned") {
		t.Errorf("a shim of another generation: %v, %s", err, out)
	}
	// SIGTERM is forwarded to the agent.
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := exitCode(t, c); got != 128+15 {
		t.Errorf("status %d", got)
	}
	if e, err := bundle.ReadExit(l.Bundle, l.Generation); err != nil || e.Signal != "SIGTERM" || !e.Known || e.Reason != backends.ReasonShimTerminated {
		t.Errorf("exit = %+v, %v", e, err)
	}
	if _, err := bundle.ReadExit(l.Bundle, "other"); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("exit of another generation: %v", err)
	}
}

func TestWaitsForStartLock(t *testing.T) {
	t.Parallel()
	l := launch(t, "sh", "-c", "exit 5")
	lk, err := bundle.LockStart(l.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.LockStart(l.Bundle); !team.IsCode(err, team.CodeConflict) {
		t.Errorf("second lock: %v; want a conflict", err)
	}
	c := start(t, l)
	id, err := proc.Identify(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	// It blocks in flock: asleep without a proc.json. The missing launch.json
	// then shows that the start was abandoned.
	if err := os.Remove(l.Bundle.Launch()); err != nil {
		t.Fatal(err)
	}
	if !proc.Alive(id) {
		t.Error("the shim did not wait")
	}
	lk.Unlock()
	if got := exitCode(t, c); got != 1 {
		t.Errorf("status %d; want 1", got)
	}
	for _, f := range []string{l.Bundle.Proc(), l.Bundle.Exit()} {
		if _, err := os.Stat(f); err == nil {
			t.Errorf("a start that was given up wrote %s", f)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--bundle"}, {"--bundle", "x"}, {"--generation", "x"}, {"--else", "x"}} {
		if _, _, err := parse(args); err == nil {
			t.Errorf("parse(%q) succeeded", args)
		}
	}
	b, g, err := parse([]string{"--generation=g=1", "--bundle", "/b"})
	if b != "/b" || g != "g=1" || err != nil {
		t.Errorf("parse = %q, %q, %v", b, g, err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("TERM", "screen")
	t.Setenv("TMUX", "/s,1,0")
	t.Setenv("TMUX_PANE", "%7")
	t.Setenv("OTHER", "ours")
	l := backends.Launch{Generation: "g", Env: []string{"A=1", "TERM=xterm", "TMUX_PANE=%1", team.EnvGen + "=old", proc.EnvDetached + "=1"}}
	got := environment(l, true)
	want := []string{"A=1", "TERM=screen", "TMUX=/s,1,0", "TMUX_PANE=%7", team.EnvGen + "=g"}
	if !slices.Equal(got, want) {
		t.Errorf("with a terminal: %q; want %q", got, want)
	}
	got = environment(l, false)
	want = []string{"A=1", "TERM=xterm", "TMUX_PANE=%1", team.EnvGen + "=g"}
	if !slices.Equal(got, want) {
		t.Errorf("without: %q; want %q", got, want)
	}
}

func TestTransientStartFailureIsUnknown(t *testing.T) {
	t.Parallel()
	for err, permanent := range map[error]bool{
		syscall.EAGAIN: false, syscall.ENOMEM: false, syscall.EMFILE: false,
		syscall.ENOENT: true, syscall.EACCES: true, syscall.ENOEXEC: true,
	} {
		e := execFailure(backends.Exit{}, err)
		if e.ExecFailed != permanent || e.Known != permanent || e.Success() || e.Reason == "" {
			t.Errorf("%v: %+v", err, e)
		}
	}
}

// An agent's command may start a supervisor, which must not be ended with the
// agent.
func TestDetachedOutlivesTheAgent(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	// The agent exits only when the detached process has its mark: until the
	// exec it is a copy of the shell.
	l := launch(t, "sh", "-c", `env -u TEAMCTL_GENERATION TEAMCTL_DETACHED=1 setsid sleep 1000 >/dev/null 2>&1 & echo $! >"$0"
		until tr '\0' '\n' </proc/$!/environ | grep -q ^TEAMCTL_DETACHED=1; do :; done
		sleep 1000 & exit 6`, file)
	if got := exitCode(t, start(t, l)); got != 6 {
		t.Errorf("status %d", got)
	}
	e, err := bundle.ReadExit(l.Bundle, l.Generation)
	if err != nil || e.Leftover != 1 {
		t.Errorf("exit = %+v, %v; want one leftover", e, err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	id, err := proc.Identify(pid)
	if err != nil {
		t.Fatalf("the detached process was ended with the agent: %v", err)
	}
	if n, err := proc.KillTree(t.Context(), []backends.ProcID{id}, "", 0); n != 1 || err != nil {
		t.Errorf("ended %d, %v", n, err)
	}
}
