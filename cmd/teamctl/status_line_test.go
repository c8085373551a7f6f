package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStatusInTmux: the line is in an option of the person's server, changes with the team,
// and goes with the command.
func TestStatusInTmux(t *testing.T) {
	r := newFaultRig(t)
	socket := filepath.Join(r.dir, "p")
	tmux := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(r.command(append([]string{"tmux", "-S", socket, "-f", "/dev/null"}, args...)...))
	}
	tmux("new-session", "-d", "sleep", "10000")
	defer tmux("kill-server")
	c := exec.Command(r.exe, "status", "--follow", "--tmux")
	c.Dir, c.Env = r.dir, append(r.env, "TMUX="+socket+","+tmux("display-message", "-p", "#{pid}")+",0")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	shows := func(want string) {
		t.Helper()
		r.until("the line "+want, func() bool { return tmux("show-options", "-gqv", "@teamctl") == want })
	}
	shows("f")
	r.teamctl("task", "add", "one")
	shows("f ·1 0/1")
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	_ = c.Wait() // it ends by the signal
	shows("")
}
