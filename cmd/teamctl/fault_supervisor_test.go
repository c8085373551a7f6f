package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
)

// These tests cover faults of the supervisor itself. docs/faults.md lists the test for each
// fault; tests that concern a single package are in that package.

func TestFault01SupervisorKilled20Agents(t *testing.T) {
	r := newFaultRig(t)
	const agents = 20
	r.teamctl("spawn", "a", "-n", strconv.Itoa(agents), "--worktree", "none", "--", "fakeagent", "hold")
	before := r.members()
	if len(before) != agents {
		t.Fatalf("%d members", len(before))
	}
	rounds := 10
	if testing.Short() {
		rounds = 2
	}
	var posted []string
	for range rounds {
		r.kill(r.supervisor())
		posted = append(posted, r.send("a", "while nobody supervises"))
		began := time.Now()
		after := r.members()
		// The limit of 2 s is checked by bench: other tests may keep this machine busy.
		if took := time.Since(began); took > patience {
			t.Errorf("adopting %d agents took %s", agents, took)
		}
		for name, was := range before {
			is := after[name]
			if is.PID != was.PID || is.Generation != was.Generation || is.Restarts != 0 || is.Observed != team.Running {
				t.Fatalf("%s was %d, is %d %s, restarts %d", name, was.PID, is.PID, is.Observed, is.Restarts)
			}
		}
	}
	mail := r.mail("a")
	for _, id := range posted {
		if mail[id] != 1 {
			t.Errorf("message %s is in the mailbox %d times", id, mail[id])
		}
	}
}

// TestFault02SupervisorKilledWhileSpawning kills the supervisor at many points of a spawn. The
// member has at most one process, and no process exists without an entry in the roster.
func TestFault02SupervisorKilledWhileSpawning(t *testing.T) {
	r := newFaultRig(t)
	r.agent("first", "never", "fakeagent", "hold") // starts the tmux server
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	for i := range rounds {
		name := fmt.Sprintf("m%d", i)
		sup := r.supervisor()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = r.try(r.exe, "spawn", name, "--", "fakeagent", "hold") // the answer may be lost
		}()
		delay := time.NewTimer(time.Duration(i) * 240 * time.Millisecond / time.Duration(rounds))
		<-delay.C
		r.kill(sup)
		<-done
		r.members() // starts a supervisor
	}
	for name, m := range r.members() {
		if m.Observed != team.Running {
			m = r.state(name, team.Running)
		}
		p := r.proc(name)
		if p.Agent.PID != m.PID || !proc.Alive(p.Agent) {
			t.Errorf("%s: %d in the ledger, %d in the bundle", name, m.PID, p.Agent.PID)
		}
	}
	have := r.members()
	owners := map[string][]int{}
	for _, pid := range strays.Below(r.dir)() {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			continue
		}
		for kv := range strings.SplitSeq(string(env), "\x00") {
			if name, ok := strings.CutPrefix(kv, team.EnvAgentName+"="); ok && strings.Contains(string(env), team.EnvGen+"=") {
				owners[name] = append(owners[name], pid)
			}
		}
	}
	for name, pids := range owners {
		if _, ok := have[name]; !ok || len(pids) != 1 {
			t.Errorf("processes of %s: %v, on the roster %v", name, pids, ok)
		}
	}
	if out := r.command("git", "-C", "repo", "worktree", "prune", "-n", "-v"); out != "" {
		t.Errorf("worktrees without a directory: %s", out)
	}
}

func TestFault03TwoSupervisors(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	sup := r.supervisor()
	socket := filepath.Join(r.dir, "r")
	inode := func() string { return r.command("find", socket, "-type", "s", "-printf", "%p %i\n") }
	was := inode()
	for range 3 {
		_, err := r.try(r.exe, "supervise", "--team", "f")
		if code := exitCode(err); code != team.ExitStatus(team.Errorf(team.CodeConflict, "")) || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", sup.PID)) {
			t.Fatalf("the second supervisor: status %d, %v", code, err)
		}
	}
	if is := inode(); is != was {
		t.Errorf("sockets were replaced:\n%s\n%s", was, is)
	}
	// Now there is none, and many commands need one.
	r.kill(sup)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := r.try(r.exe, "ps"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// The losers report that and exit, which takes a moment.
	r.until("one supervisor", func() bool {
		n := 0
		for _, pid := range strays.Below(r.dir)() {
			if cmd, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(cmd), "\x00supervise\x00") {
				n++
			}
		}
		return n == 1
	})
}

// TestFault16ConcurrentOrders checks that conflicting orders are carried out one after the other,
// that every caller gets an answer, and that the state matches the last order.
func TestFault16ConcurrentOrders(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	for range 3 {
		var wg sync.WaitGroup
		for _, order := range []string{"stop", "restart", "start", "stop", "restart", "stop"} {
			wg.Go(func() {
				_, err := r.try(r.exe, order, "a")
				if code := exitCode(err); code != 0 && code != team.ExitStatus(team.Errorf(team.CodeConflict, "")) {
					t.Errorf("%s: status %d: %v", order, code, err)
				}
			})
		}
		wg.Wait()
		r.until("the last intent to be carried out", func() bool {
			m := r.members()["a"]
			return m.Desired == team.WantRunning && m.Observed == team.Running || m.Desired == team.WantStopped && m.Observed.Terminal()
		})
	}
	r.teamctl("stop", "a")
	if m := r.members()["a"]; m.Observed != team.Completed || proc.Alive(r.proc("a").Agent) {
		t.Errorf("stopped: %s", m.Observed)
	}
	r.teamctl("start", "a")
	if m := r.members()["a"]; m.Observed != team.Running || m.Restarts != 0 {
		t.Errorf("started: %s, restarts %d", m.Observed, m.Restarts)
	}
}

// TestFault17ManyMembers checks that members do not need a file watch each, and share one tmux
// client.
func TestFault17ManyMembers(t *testing.T) {
	r := newFaultRig(t)
	many := 40
	if testing.Short() {
		many = 12
	}
	r.agent("one", "never", "fakeagent", "hold")
	first := r.inotify(r.supervisor().PID)
	r.teamctl("spawn", "m", "-n", strconv.Itoa(many), "--worktree", "none", "--", "fakeagent", "hold")
	// One watch is shared by all members until their first output has settled.
	if n := r.inotify(r.supervisor().PID); n > first+1 {
		t.Errorf("%d inotify instances with %d members, %d with one", n, many, first)
	}
	clients := 0
	for _, pid := range strays.Below(r.dir)() {
		if cmd, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(string(cmd), "tmux\x00") && strings.Contains(string(cmd), "\x00-C\x00") {
			clients++
		}
	}
	if clients > 1 {
		t.Errorf("%d tmux clients", clients)
	}
	for name, m := range r.members() {
		if m.Observed != team.Running {
			t.Errorf("%s is %s", name, m.Observed)
		}
	}
}

func (r *faultRig) inotify(pid int) (n int) {
	r.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		r.Fatal(err)
	}
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.Contains(to, "inotify") {
			n++
		}
	}
	return n
}

// foreignPeer sends a request to a socket and succeeds if it gets no answer.
func foreignPeer(args []string) int {
	if len(args) != 1 {
		return 64
	}
	conn, err := net.Dial("unix", args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = conn.Write([]byte("POST /v1/status HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"))
	n, err := conn.Read(make([]byte, 100))
	if n != 0 {
		fmt.Fprintln(os.Stderr, "answered")
		return 1
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		fmt.Fprintln(os.Stderr, "kept waiting: the connection was not closed")
		return 3
	}
	return 0
}

// TestFault37ForeignPeer checks that the socket's directory keeps other users out, and that the
// check of their uid does so if the directory was opened.
func TestFault37ForeignPeer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs another uid: root only")
	}
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	socket := strings.TrimSpace(r.command("find", r.dir+"/r", "-type", "s", "-name", "s"))
	for path, mode := range map[string]os.FileMode{socket: 0o600, filepath.Dir(socket): 0o700} {
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, fi.Mode(), err)
		}
	}
	for _, path := range []string{r.dir, r.dir + "/r", filepath.Dir(socket), socket} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	bin, err := exec.LookPath("foreignpeer")
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(r.dir, "foreignpeer")
	r.command("cp", bin, exe)
	if err := os.Chmod(exe, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, socket)
	cmd.Dir, cmd.Env = "/", []string{"GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("a peer of another uid: %v\n%s", err, out)
	}
	// No command works below a directory in which others can rename files; teamctl closes its own
	// directories.
	r.kill(r.supervisor())
	if _, err := r.try(r.exe, "start", "a"); exitCode(err) != team.ExitStatus(team.Errorf(team.CodeDenied, "")) || !strings.Contains(err.Error(), "who can replace") {
		t.Errorf("a command below an open directory: %v", err)
	}
	if err := os.Chmod(r.dir, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(r.dir+"/t", 0o755); err != nil {
		t.Fatal(err)
	}
	r.teamctl("start", "a")
	for _, path := range []string{r.dir + "/t", r.dir + "/r", filepath.Dir(socket)} {
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("%s stays open: %v, %v", path, fi.Mode(), err)
		}
	}
}
