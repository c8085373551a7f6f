package shim

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/holder"
	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
)

// needGroups skips a test if there are no control groups.
func needGroups(t *testing.T) {
	t.Helper()
	if s := cgroup.Probe(); !s.Kill || !s.Freeze {
		t.Skipf("no control groups here: %s", s.Why)
	}
}

// until waits for a condition without an event.
func until(t *testing.T, what string, ok func() bool) {
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

// up starts a shim and returns its proc.json.
func up(t *testing.T, l backends.Launch) (*exec.Cmd, backends.Proc) {
	t.Helper()
	c := start(t, l)
	var pr backends.Proc
	until(t, "the agent is up", func() bool {
		var err error
		pr, err = bundle.ReadProc(l.Bundle, l.Generation)
		return err == nil
	})
	return c, pr
}

// words waits until a file contains n words.
func words(t *testing.T, path string, n int) []string {
	t.Helper()
	var f []string
	until(t, path, func() bool {
		b, err := os.ReadFile(path)
		f = strings.Fields(string(b))
		return err == nil && len(f) >= n
	})
	return f
}

func gone(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the control group %s is left: %v", dir, err)
	}
}

// TestFault08HiddenAfterShimKilled checks that a process that called setsid,
// lost its parent and cleared its environment is found after the shim was
// killed: only the control group identifies it.
func TestFault08HiddenAfterShimKilled(t *testing.T) {
	t.Parallel()
	needGroups(t)
	l := launch(t, "sh", "-c", `env -i setsid sh -c 'trap "" TERM HUP; echo $$; while :; do sleep 1; done' >pids & exec sleep 1000`)
	c, pr := up(t, l)
	if pr.Cgroup == "" || pr.Uncontained != "" {
		t.Fatalf("not contained: %+v", pr)
	}
	pid, err := strconv.Atoi(words(t, filepath.Join(l.Dir, "pids"), 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := proc.Identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(proc.ByGeneration(l.Generation), hidden) {
		t.Fatal("it is not hidden: the test proves nothing")
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if err := proc.Signal(pr.Agent, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
		t.Fatal(err)
	}
	n, err := holder.EndRest(context.Background(), nil, l.Bundle, l.Generation, []backends.ProcID{pr.Agent}, 100*time.Millisecond)
	if err != nil || n < 1 {
		t.Errorf("ended %d, %v", n, err)
	}
	if proc.Alive(hidden) {
		t.Error("it lives")
	}
	gone(t, pr.Cgroup)
}

// TestFault08LeftoversInGroup does the same with the shim alive: the exit
// counts the process.
func TestFault08LeftoversInGroup(t *testing.T) {
	t.Parallel()
	needGroups(t)
	l := launch(t, "sh", "-c", `env -i setsid sh -c 'echo up >up; exec sleep 1000' & while [ ! -s up ]; do :; done; exit 3`)
	c, pr := up(t, l)
	if got := exitCode(t, c); got != 3 {
		t.Errorf("status %d", got)
	}
	if e, err := bundle.ReadExit(l.Bundle, l.Generation); err != nil || e.Leftover < 1 || !e.Known || e.Code != 3 {
		t.Errorf("%+v, %v", e, err)
	}
	gone(t, pr.Cgroup)
}

// TestFault07FrozenStops checks that SIGTERM ends a paused member too.
func TestFault07FrozenStops(t *testing.T) {
	t.Parallel()
	needGroups(t)
	l := launch(t, "sh", "-c", `trap 'exit 9' TERM; echo up >up; while :; do sleep 0.05; done`)
	c, pr := up(t, l)
	words(t, filepath.Join(l.Dir, "up"), 1)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := holder.Freeze(ctx, l, pr, true); err != nil {
		t.Fatal(err)
	}
	if on, err := holder.Frozen(l, pr); err != nil || !on {
		t.Fatalf("frozen: %v, %v", on, err)
	}
	if _, err := proc.KillTreeIn(ctx, holder.GroupOf(l.Bundle, l.Generation), []backends.ProcID{pr.Agent}, l.Generation, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if got := exitCode(t, c); got != 9 {
		t.Errorf("status %d; want 9, from its handler of SIGTERM", got)
	}
	gone(t, pr.Cgroup)
	if err := holder.Freeze(ctx, l, pr, true); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("pause of what has exited: %v", err)
	}
}

// A file that cannot be executed leaves no group, and does not prevent the
// containment of others.
func TestExecFailureLeavesNoGroup(t *testing.T) {
	t.Parallel()
	needGroups(t)
	file := filepath.Join(t.TempDir(), "x")
	if err := strays.WriteProgram(file, []byte("\x7fELF no")); err != nil {
		t.Fatal(err)
	}
	for _, limits := range []team.Limits{{}, {MemoryBytes: 1 << 30}} {
		l := launch(t, file)
		l.Limits = limits
		if err := bundle.WriteLaunch(l); err != nil {
			t.Fatal(err)
		}
		_ = start(t, l).Wait()
		e, err := bundle.ReadExit(l.Bundle, l.Generation)
		if err != nil || !e.ExecFailed || e.Code != 126 || !strings.Contains(e.Reason, "exec format error") {
			t.Errorf("%+v: %+v, %v", limits, e, err)
		}
		if pr, err := bundle.ReadProc(l.Bundle, l.Generation); err != nil || pr.Uncontained != "" {
			t.Errorf("%+v, %v", pr, err)
		}
		if g := holder.GroupOf(l.Bundle, l.Generation); g != nil {
			t.Errorf("%+v: the group is left", limits)
		}
	}
}

// TestRlimits checks that without controllers a memory limit is a resource
// limit of the agent, from its first instruction on, and cannot be raised
// again.
func TestRlimits(t *testing.T) {
	t.Parallel()
	if cgroup.Probe().Memory {
		t.Skip("limits are kept by the memory controller here")
	}
	l := launch(t, "sh", "-c", `ulimit -d; ulimit -Hd; echo "$0 $1"; ls -l /proc/$$/fd`, "zero", "one two")
	run := func() []string {
		t.Helper()
		if err := bundle.WriteLaunch(l); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(os.Args[0], "shim", "--bundle", string(l.Bundle), "--generation="+l.Generation)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	plain := run()
	l.Generation, l.Limits = team.NewUUID(), team.Limits{MemoryBytes: 256 << 20, CPUPercent: 50}
	limited := run()
	kb := strconv.Itoa(256 << 10)
	if want := []string{kb, kb, "zero one two"}; !slices.Equal(limited[:3], want) {
		t.Errorf("%q; want %q", limited[:3], want)
	}
	if len(limited) != len(plain) {
		t.Errorf("descriptors with limits: %q, without: %q", limited[3:], plain[3:])
	}
	pr, err := bundle.ReadProc(l.Bundle, l.Generation)
	if want := (backends.Kept{Memory: backends.KeptByRlimit, CPU: backends.KeptByNothing}); err != nil || pr.Limits != want {
		t.Errorf("kept %+v, %v; want %+v", pr.Limits, err, want)
	}
}

// TestFault10MemoryLimit checks that a process that exceeds its limit gets an
// error, and that the machine is not affected.
func TestFault10MemoryLimit(t *testing.T) {
	t.Parallel()
	if cgroup.Probe().Memory {
		t.Skip("limits are kept by the memory controller here")
	}
	awk, err := exec.LookPath("awk")
	if err != nil {
		t.Skip(err)
	}
	l := launch(t, awk, `BEGIN { s = "x"; for (i = 0; i < 28; i++) s = s s; print length(s) }`) // 256 MiB
	for limit, ok := range map[int64]bool{64 << 20: false, 4 << 30: true} {
		l.Limits = team.Limits{MemoryBytes: limit}
		l.Generation = team.NewUUID()
		if err := bundle.WriteLaunch(l); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(os.Args[0], "shim", "--bundle", string(l.Bundle), "--generation="+l.Generation)
		if out, err := c.CombinedOutput(); (err == nil) != ok {
			t.Errorf("with %s: %v, %.200s", team.FormatSize(limit), err, out)
		}
	}
}

// TestFault09ForkBomb checks that under a process limit a fork bomb gets
// errors, the shim stays in control, and one stop ends all of it. It runs as a
// user without other processes, because the limit does not apply to root.
func TestFault09ForkBomb(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root, to become a user without processes")
	}
	if cgroup.Probe().PIDs {
		t.Skip("limits are kept by the pids controller here")
	}
	const uid, most = 61_973, 24
	dir, err := os.MkdirTemp("/tmp", "tcbomb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = strays.WriteProgram(filepath.Join(dir, "shim"), self)
	}
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"b", "w"} {
		p := filepath.Join(dir, d)
		if err := errors.Join(os.Mkdir(p, 0o700), os.Chown(p, uid, uid)); err != nil {
			t.Fatal(err)
		}
	}
	// It ends even without a limit: 2 to the 7th processes, for at most 20
	// seconds.
	bomb := `exec 2>refused; b() { [ "$1" -gt 0 ] && { b $(($1-1)) & b $(($1-1)) & }; sleep 20; }; echo up >up; b 7`
	l := backends.Launch{
		Team: "t", Agent: "bomb", Generation: team.NewUUID(), Argv: []string{"sh", "-c", bomb},
		Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: filepath.Join(dir, "w"), Bundle: team.Bundle(filepath.Join(dir, "b")),
		Limits: team.Limits{PIDs: most},
	}
	if err := bundle.WriteLaunch(l); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(l.Bundle.Launch(), uid, uid); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(filepath.Join(dir, "shim"), "shim", "--bundle", string(l.Bundle), "--generation="+l.Generation)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // of a failed test; otherwise it has ended
		_, _ = proc.KillTree(context.Background(), nil, l.Generation, 0)
		_ = c.Wait()
	})
	words(t, filepath.Join(l.Dir, "up"), 1)
	var pr backends.Proc
	until(t, "proc.json", func() bool { pr, err = bundle.ReadProc(l.Bundle, l.Generation); return err == nil })
	if pr.Limits.PIDs != backends.KeptByRlimit {
		t.Errorf("kept by %q", pr.Limits.PIDs)
	}
	top := 0
	until(t, "the bomb is refused a fork", func() bool {
		top = max(top, len(proc.ByGeneration(l.Generation)))
		b, err := os.ReadFile(filepath.Join(l.Dir, "refused"))
		return err == nil && strings.Contains(strings.ToLower(string(b)), "fork")
	})
	for range 50 {
		top = max(top, len(proc.ByGeneration(l.Generation)))
	}
	if top > most+2 { // room for a few threads of the shim that have ended since
		t.Errorf("%d processes under a limit of %d", top, most)
	}
	begun := time.Now()
	if _, err := proc.KillTreeIn(t.Context(), nil, []backends.ProcID{pr.Agent}, l.Generation, 200*time.Millisecond); err != nil {
		t.Error(err)
	}
	if d := time.Since(begun); d > 30*time.Second {
		t.Errorf("ending it took %s", d)
	}
	_ = c.Wait()
	if e, err := bundle.ReadExit(l.Bundle, l.Generation); err != nil || !e.Known {
		t.Errorf("%+v, %v", e, err)
	}
	if left := proc.ByGeneration(l.Generation); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// oomGroup is a group that only reports the count of kills.
type oomGroup struct {
	group
	kills int64
}

func (g oomGroup) OOMKills() (int64, error) { return g.kills, nil }

// TestFault10OOMNamed checks that an end by SIGKILL is called oom exactly if
// the kernel has counted a kill in the group.
func TestFault10OOMNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		exit  backends.Exit
		kills int
		want  string
	}{
		{backends.Exit{Known: true, Code: -1, Signal: "SIGKILL"}, 1, backends.ReasonOOM},
		{backends.Exit{Known: true, Code: 137}, 2, backends.ReasonOOM},
		{backends.Exit{Known: true, Code: -1, Signal: "SIGKILL"}, 0, ""},
		{backends.Exit{Known: true, Code: 1}, 1, ""}, // it survived the kill of a child
		{backends.Exit{Known: true, Code: -1, Signal: "SIGTERM"}, 1, ""},
	} {
		s := &state{group: oomGroup{kills: int64(c.kills)}}
		s.oom(&c.exit)
		if c.exit.Reason != c.want {
			t.Errorf("%+v with %d kills: reason %q; want %q", c.exit, c.kills, c.exit.Reason, c.want)
		}
	}
	(&state{}).oom(&backends.Exit{Signal: "SIGKILL"})
}

func TestParseExec(t *testing.T) {
	t.Parallel()
	m, p, path, argv, err := parseExec([]string{"--memory=5", "--pids=6", "--", "/bin/x", "x", "--", "-y"})
	if err != nil || m != 5 || p != 6 || path != "/bin/x" || !slices.Equal(argv, []string{"x", "--", "-y"}) {
		t.Errorf("%d %d %q %q %v", m, p, path, argv, err)
	}
	for _, bad := range [][]string{nil, {"--"}, {"--", "/bin/x"}, {"--memory=", "--", "a", "b"}, {"--memory=-1", "--", "a", "b"}, {"--cpu=1", "--", "a", "b"}} {
		if _, _, _, _, err := parseExec(bad); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func TestSetLimitNeverRaises(t *testing.T) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &old); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_CORE, &old) })
	if err := setLimit(unix.RLIMIT_CORE, 0); err != nil {
		t.Fatal(err)
	}
	if err := setLimit(unix.RLIMIT_CORE, 1<<20); err != nil {
		t.Fatal(err)
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &now); err != nil || now.Max != 0 {
		t.Errorf("%+v, %v", now, err)
	}
}
