package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/environ"
	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "fake" {
		fake(os.Args[2:])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// fake runs as "idle", "stubborn" (ignores SIGTERM), or "tree FILE" (a stubborn
// child in a session of its own whose parent exits at once, and a plain child).
func fake(args []string) {
	switch args[0] {
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "orphan": // exits; its child is re-parented
		c := exec.Command(os.Args[0], "fake", "stubborn", args[1])
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if c.Start() == nil {
			ready(args[1])
		}
		return
	case "tree":
		_ = exec.Command(os.Args[0], "fake", "orphan", args[1]+".1").Run()
		c := exec.Command(os.Args[0], "fake", "idle", args[1]+".2")
		c.Env = append(os.Environ(), "TEAMCTL_GENERATION=") // identified only by its parent
		if c.Start() != nil {
			os.Exit(1)
		}
	}
	if len(args) > 1 {
		ready(args[1])
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2)
	for {
		<-c
	}
}

func ready(file string) {
	_ = os.WriteFile(file+"."+strconv.Itoa(os.Getpid()), nil, 0o600)
}

// run starts a fake process, which the test reaps.
func run(t *testing.T, gen string, args ...string) (*exec.Cmd, backends.ProcID) {
	t.Helper()
	return start(t, gen, os.Args[0], append([]string{"fake"}, args...)...)
}

func start(t *testing.T, gen, name string, args ...string) (*exec.Cmd, backends.ProcID) {
	t.Helper()
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), team.EnvGen+"="+gen)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	id, err := Identify(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return c, id
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(5 * time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not in time", what)
		}
	}
}

func TestFault04PIDReuse(t *testing.T) {
	t.Parallel()
	_, id := run(t, "g-reuse", "idle")
	if !Alive(id) {
		t.Fatal("a living process reads as dead")
	}
	for name, other := range map[string]backends.ProcID{
		"start time": {BootID: id.BootID, PID: id.PID, StartTicks: id.StartTicks + 1},
		"boot":       {BootID: "another boot", PID: id.PID, StartTicks: id.StartTicks},
		"zero":       {},
	} {
		if Alive(other) {
			t.Errorf("%s differs and it reads as alive", name)
		}
		if err := Signal(other, syscall.SIGKILL); !errors.Is(err, ErrGone) {
			t.Errorf("%s differs: signal gave %v; want ErrGone", name, err)
		}
		w, err := Watch(other)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-w.Done():
		default:
			t.Errorf("%s differs: the watch waits for a stranger", name)
		}
		w.Close()
		if n, err := KillTree(context.Background(), []backends.ProcID{other}, "", 0); n != 0 || err != nil {
			t.Errorf("%s differs: ended %d, %v", name, n, err)
		}
	}
	if !Alive(id) {
		t.Error("a stranger was killed")
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	old, err := Age(self)
	if err != nil || old < 0 || old > time.Hour {
		t.Errorf("age of this process: %s, %v", old, err)
	}
	up, err := SinceBoot()
	if err != nil || up < old {
		t.Errorf("up for %s, %v; this process for %s", up, err, old)
	}
	self.BootID = "another"
	if _, err := Age(self); !errors.Is(err, ErrGone) {
		t.Errorf("age of a process of another boot: %v", err)
	}
}

func TestFault05ZombieIsDead(t *testing.T) {
	t.Parallel()
	c, id := run(t, "g-zombie", "idle")
	w, err := Watch(id)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := Signal(id, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.Done(): // it is not reaped
	case <-time.After(5 * time.Minute):
		t.Fatal("the death of an unreaped process was not seen")
	}
	if Alive(id) || !Zombie(id) {
		t.Errorf("alive %v, zombie %v; want a zombie that counts as dead", Alive(id), Zombie(id))
	}
	if _, err := Identify(id.PID); !errors.Is(err, ErrGone) {
		t.Errorf("identify a zombie: %v", err)
	}
	if any, err := IdentifyAny(id.PID); err != nil || any != id {
		t.Errorf("identify any: %+v, %v; want %+v", any, err, id)
	}
	_ = c.Wait()
	if Zombie(id) {
		t.Error("still a zombie after the wait")
	}
}

func TestWatchClose(t *testing.T) {
	t.Parallel()
	_, id := run(t, "g-close", "idle")
	w, err := Watch(id)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	w.Close()
	select {
	case <-w.Done():
		t.Error("closing the watch reads as a death")
	default:
	}
}

func TestPollFallback(t *testing.T) {
	t.Parallel()
	_, id := run(t, "g-poll", "idle")
	wait, stop, err := poll(id)
	if err != nil {
		t.Fatal(err)
	}
	died := make(chan bool)
	go func() { died <- wait() }()
	if err := Signal(id, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !<-died {
		t.Error("the death was not seen")
	}
	stop()
}

func TestKillTree(t *testing.T) {
	t.Parallel()
	const gen = "g-tree-5ffb"
	file := filepath.Join(t.TempDir(), "up")
	_, id := run(t, gen, "tree", file)
	eventually(t, "the tree is up", func() bool {
		m, _ := filepath.Glob(file + "*")
		return len(m) >= 3
	})
	var plain, orphan backends.ProcID
	eventually(t, "both children are ready", func() bool {
		plain, orphan = byFile(t, file+".2."), byFile(t, file+".1.")
		return plain.PID != 0 && orphan.PID != 0
	})
	if ids := descendants(id); len(ids) != 1 || ids[0] != plain {
		t.Errorf("descendants = %v; want %v", ids, plain)
	}
	found := map[backends.ProcID]bool{}
	for _, g := range ByGeneration(gen) {
		found[g] = true
	}
	if !found[id] || !found[orphan] || found[plain] {
		t.Errorf("by generation: %v; want %v and %v", found, id, orphan)
	}
	if all, err := Generations(); err != nil || !all[gen] || all[""] {
		t.Errorf("generations: %v, %v; want %s among them", all, err, gen)
	}
	n, err := KillTree(context.Background(), []backends.ProcID{id}, gen, 100*time.Millisecond)
	if err != nil || n != 3 {
		t.Errorf("ended %d, %v; want 3", n, err)
	}
	for _, p := range []backends.ProcID{id, plain, orphan} {
		if Alive(p) {
			t.Errorf("%d survived", p.PID)
		}
	}
}

// byFile finds the living process that has written prefix+pid.
func byFile(t *testing.T, prefix string) backends.ProcID {
	t.Helper()
	m, err := filepath.Glob(prefix + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m {
		pid, err := strconv.Atoi(strings.TrimPrefix(f, prefix))
		if err != nil {
			t.Fatal(err)
		}
		if id, err := Identify(pid); err == nil {
			return id
		}
	}
	return backends.ProcID{}
}

// longGrace is what a test must not wait for.
const longGrace = 5 * time.Minute

func TestKillTreeStopped(t *testing.T) {
	t.Parallel()
	_, id := run(t, "g-stopped", "idle")
	if err := Signal(id, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if n, err := KillTree(context.Background(), []backends.ProcID{id}, "", longGrace); n != 1 || err != nil {
		t.Errorf("ended %d, %v", n, err)
	}
	if time.Since(begun) >= longGrace {
		t.Error("a stopped process did not take SIGTERM")
	}
}

func TestKillTreeCancelEndsTheGrace(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "up")
	_, id := run(t, "g-cancel", "stubborn", file)
	eventually(t, "it is up", func() bool { return byFile(t, file+".") == id })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	begun := time.Now()
	if n, err := KillTree(ctx, []backends.ProcID{id}, "", longGrace); n != 1 || err != nil {
		t.Errorf("ended %d, %v", n, err)
	}
	if time.Since(begun) >= longGrace || Alive(id) {
		t.Errorf("took %s, alive %v", time.Since(begun), Alive(id))
	}
}

// While a process executes a program it has no environment: it must be taken
// neither for one that is not detached, nor for one without a generation.
func TestAmidExec(t *testing.T) {
	const gen = "g-amid-5e1f"
	// A shell, because typically a program with one thread executes others.
	script := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(script, []byte("[ $1 -eq 0 ] || exec sh \"$0\" $(($1 - 1))\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := func() (*exec.Cmd, backends.ProcID) {
		return start(t, gen, "sh", script, "400")
	}
	mine, mineID := again()
	t.Setenv(EnvDetached, "1")
	detached, detachedID := again()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = mine.Process.Wait()
		_, _ = detached.Process.Wait()
	}()
	// A process that exits loses its environment before it becomes a zombie: only one
	// that has it after a look had it during the look.
	had := func(id backends.ProcID) bool { return Alive(id) && len(environ.Of(id.PID, nil)) > 0 }
	looks := 0
	for going := true; going; looks++ {
		select {
		case <-over:
			going = false
		default:
		}
		before := Alive(mineID)
		found := ByGeneration(gen)
		if before && had(mineID) && !slices.Contains(found, mineID) {
			t.Fatalf("look %d: a process of the generation is not found: %v", looks, found)
		}
		if slices.Contains(found, detachedID) && Alive(detachedID) {
			t.Fatalf("look %d: a detached process is of the generation", looks)
		}
		kids, err := Children()
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(kids, detachedID) && had(detachedID) {
			t.Fatalf("look %d: a detached process is a child", looks)
		}
	}
	t.Log(looks, "looks")
}

func TestDetachedIsNobodys(t *testing.T) {
	const gen = "g-detached-91c2"
	t.Setenv(EnvDetached, "1")
	_, id := run(t, gen, "idle")
	if ids := ByGeneration(gen); len(ids) != 0 {
		t.Errorf("by generation: %v", ids)
	}
	if all, err := Generations(); err != nil || all[gen] {
		t.Errorf("generations: %v, %v", all, err)
	}
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range descendants(self) {
		if d == id {
			t.Error("a detached process is a descendant")
		}
	}
	kids, err := Children()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kids {
		if k == id {
			t.Error("a detached process is a child")
		}
	}
}

func TestSignalName(t *testing.T) {
	t.Parallel()
	for s, want := range map[syscall.Signal]string{syscall.SIGKILL: "SIGKILL", syscall.SIGHUP: "SIGHUP", 63: "signal 63"} {
		if got := SignalName(s); got != want {
			t.Errorf("signal %d = %q; want %q", s, got, want)
		}
	}
}

// descendants lists the living processes below id, without detached ones and what is
// below them.
func descendants(id backends.ProcID) []backends.ProcID {
	s, err := takeSight()
	if err != nil || !Alive(id) {
		return nil
	}
	return s.below([]backends.ProcID{id})
}
