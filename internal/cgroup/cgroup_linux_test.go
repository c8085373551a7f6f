package cgroup

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// real makes a group on this machine, or skips the test if that is impossible.
func real(t *testing.T) *Group {
	t.Helper()
	if s := Probe(); !s.Kill || !s.Freeze {
		t.Skipf("no control groups here: %s", s.Why)
	}
	g, err := Create(Name("test-"+strconv.Itoa(os.Getpid())+"-"+strings.ToLower(t.Name()), "a", team.NewUUID()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = g.Kill()
		eventually(t, "the group is empty", func() bool { on, err := g.Populated(); return err != nil || !on })
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Dir(g.Path())); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the team's directory is left: %v", err)
		}
	})
	return g
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late := time.After(5 * time.Minute)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not within 60 s", what)
		}
	}
}

// inside starts a shell script in the group and returns its output.
func inside(t *testing.T, g *Group, script string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	dir, err := g.FD()
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	c := exec.Command("sh", "-c", script)
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd()), Setpgid: true}
	c.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Kill(); _ = c.Wait() })
	return c, bufio.NewReader(out)
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	l, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(l)
}

// A process that hides (a new session, no environment, another parent) is still
// in the group, and is killed with it.
func TestGroupHoldsAll(t *testing.T) {
	t.Parallel()
	g := real(t)
	c, out := inside(t, g, `env -i setsid sh -c 'sleep 1000 & echo $!; exec sleep 1000' & echo up; wait`)
	line(t, out)
	line(t, out)
	pids, err := g.PIDs()
	if err != nil || len(pids) < 3 {
		t.Fatalf("%v, %v: want the shell and what it started", pids, err)
	}
	if on, err := g.Populated(); err != nil || !on {
		t.Errorf("populated: %v, %v", on, err)
	}
	if err := g.Remove(); err == nil {
		t.Error("a group with processes was removed")
	}
	if _, err := Create(Name(filepath.Base(filepath.Dir(g.Path())), "a", filepath.Base(g.Path())[2:])); err == nil {
		t.Error("a group with processes was used again")
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	eventually(t, "all are dead", func() bool { on, _ := g.Populated(); return !on })
	if n, err := g.OOMKills(); n != 0 || err != nil {
		t.Errorf("oom kills: %d, %v", n, err)
	}
}

// A frozen group makes no progress, can be thawed, and can be killed while
// frozen.
func TestFreeze(t *testing.T) {
	t.Parallel()
	g := real(t)
	// Reading a FIFO paces it: each line read is progress.
	_, out := inside(t, g, `i=0; while :; do i=$((i+1)); echo $i; done`)
	line(t, out)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := g.Freeze(ctx, true); err != nil {
		t.Fatal(err)
	}
	if on, err := g.Frozen(); err != nil || !on {
		t.Fatalf("frozen: %v, %v", on, err)
	}
	pids, err := g.PIDs()
	if err != nil || len(pids) != 1 {
		t.Fatalf("%v, %v", pids, err)
	}
	used := func() string {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pids[0]) + "/schedstat")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before := used()
	wait := time.NewTimer(100 * time.Millisecond)
	<-wait.C
	if after := used(); after != before {
		t.Errorf("a frozen process ran: %s, then %s", before, after)
	}
	if err := g.Freeze(ctx, true); err != nil {
		t.Errorf("freezing twice: %v", err)
	}
	if err := g.Freeze(ctx, false); err != nil {
		t.Fatal(err)
	}
	for range 20_000 { // more than a pipe holds: it makes progress
		line(t, out)
	}
	if err := g.Freeze(ctx, true); err != nil {
		t.Fatal(err)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the frozen process is dead", func() bool { on, _ := g.Populated(); return !on })
}

// TestFault09GroupKill checks that processes that fork as fast as they can
// cannot escape being killed. The fork bombs are limited.
func TestFault09GroupKill(t *testing.T) {
	t.Parallel()
	g := real(t)
	_, out := inside(t, g, `echo up; b() { [ "$1" -gt 0 ] && { b $(($1-1)) & b $(($1-1)) & }; sleep 30; }; b 5`)
	line(t, out)
	eventually(t, "they multiply", func() bool { p, _ := g.PIDs(); return len(p) > 8 })
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all are dead", func() bool { on, _ := g.Populated(); return !on })
}

func TestNestedGroups(t *testing.T) {
	t.Parallel()
	g := real(t)
	sub := filepath.Join(g.Path(), "own")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	c, out := inside(t, g, `echo 0 > '`+sub+`/cgroup.procs' && echo moved; exec sleep 1000`)
	if l := line(t, out); l != "moved" {
		t.Fatal(l)
	}
	pids, err := g.PIDs()
	if err != nil || len(pids) != 1 || pids[0] != c.Process.Pid {
		t.Errorf("%v, %v; want %d", pids, err, c.Process.Pid)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	eventually(t, "dead", func() bool { on, _ := g.Populated(); return !on })
}

// TestStartedAtOnce checks that an agent of the same name started at the same
// moment in another home does not remove the group that the first has not
// entered yet.
func TestStartedAtOnce(t *testing.T) {
	t.Parallel()
	first := real(t)
	name := filepath.Base(filepath.Dir(first.Path())) + "/" + filepath.Base(first.Path())
	i := strings.LastIndexByte(name, '-') + 1
	second, err := Create(name[:i] + strings.Repeat("f", len(name)-i))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Remove() })
	fd, err := first.FD()
	if err != nil {
		t.Fatal(err)
	}
	_ = fd.Close()
}

func TestOpen(t *testing.T) {
	t.Parallel()
	g := real(t)
	again, err := Open(g.Path())
	if err != nil || again.Path() != g.Path() {
		t.Fatalf("%v, %v", again, err)
	}
	if _, err := Open(g.Path() + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a group that is gone: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "teamctl", "t", "a-1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"", "/", dir, "/tmp", "teamctl/t/a-1", g.Path() + "/../..", "/teamctl/x", "/teamctl/cgroup.procs/x"} {
		if g, err := Open(p); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("open %q: %v, %v", p, g, err)
		}
	}
}

// A process leaves the group of the agent that started it.
func TestLeave(t *testing.T) {
	t.Parallel()
	g := real(t)
	c, out := inside(t, g, "echo up; exec sleep 1000")
	line(t, out)
	m := theMachine()
	m.self = "/proc/" + strconv.Itoa(c.Process.Pid) + "/cgroup"
	if err := m.leave(c.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if pids, err := g.PIDs(); err != nil || len(pids) != 0 {
		t.Errorf("still in the group: %v, %v", pids, err)
	}
	if err := m.leave(c.Process.Pid); err != nil {
		t.Errorf("leaving twice: %v", err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	if got := Name("demo", "builder-2", "0123456789ab"); got != "demo/builder-2-01234567" {
		t.Error(got)
	}
	for _, n := range []string{"", "a", "a/", "/a", "a/b/c", "../b", "a/..", "a/cgroup.procs", "a/b\n"} {
		if _, _, err := splitName(n); err == nil {
			t.Errorf("%q passes for a name", n)
		}
	}
}

// A process is contained in the group of an agent or a command, but not in that
// of supervisors.
func TestContained(t *testing.T) {
	for own, want := range map[string]bool{
		"/": false, "/user.slice/x": false, "/a/teamctl/demo/w-01234567": true, "/teamctl/demo/w-01234567/below": true,
		"/a/teamctl/supervisors": false, "/home/teamctl": false,
	} {
		if got := newTree(t, own).m.contained(); got != want {
			t.Errorf("%s: %v", own, got)
		}
	}
}
