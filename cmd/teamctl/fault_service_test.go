package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// TestServiceManagerIsTold checks that the supervisor notifies a service manager when it listens
// and when it stops, and that its agents outlive it and do not inherit the manager's socket.
func TestServiceManagerIsTold(t *testing.T) {
	r := newFaultRig(t)
	path := filepath.Join(r.dir, "manager")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	told := func(want string) {
		t.Helper()
		buf := make([]byte, 256)
		if err := l.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, err := l.Read(buf)
		if err != nil || string(buf[:n]) != want {
			t.Fatalf("the manager was notified with %q, %v; want %q", buf[:n], err, want)
		}
	}
	cmd := exec.Command(r.exe, "supervise", "--team", "f")
	cmd.Dir, cmd.Env = r.dir, append(r.env, "NOTIFY_SOCKET="+path, envIdle+"=0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told("READY=1")
	r.agent("a", "never", "fakeagent", "hold")
	if id := r.supervisor(); id.PID != cmd.Process.Pid {
		t.Errorf("the supervisor is %d, not the manager's %d", id.PID, cmd.Process.Pid)
	}
	a := r.proc("a").Agent
	env, err := os.ReadFile("/proc/" + strconv.Itoa(a.PID) + "/environ")
	if err != nil || strings.Contains(string(env), "\x00NOTIFY_SOCKET=") {
		t.Errorf("the agent has the manager's socket: %v", err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	told("STOPPING=1")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if !proc.Alive(a) {
		t.Error("the agent exited with its supervisor")
	}
	if m := r.members()["a"]; m.Observed != team.Running || m.PID != a.PID {
		t.Errorf("afterwards it is %s, %d; it was %d", m.Observed, m.PID, a.PID)
	}
}
