package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestStatusInTmux checks that the status line is in an option of the person's tmux server,
// follows the team, and is removed when the command exits, even if it is killed.
func TestStatusInTmux(t *testing.T) {
	r := newFaultRig(t)
	socket := filepath.Join(r.dir, "p")
	tmux := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(r.command(append([]string{"tmux", "-S", socket, "-f", "/dev/null"}, args...)...))
	}
	tmux("new-session", "-d", "sleep", "10000")
	defer tmux("kill-server")
	env := append(r.env, "TMUX="+socket+","+tmux("display-message", "-p", "#{pid}")+",0")
	follow := func() *exec.Cmd {
		t.Helper()
		c := exec.Command(r.exe, "status", "--follow", "--tmux")
		c.Dir, c.Env = r.dir, env
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := follow()
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
	_ = c.Wait() // the signal ends it
	shows("")

	killed := follow()
	shows("f ·1 0/1")
	if err := killed.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = killed.Wait()
	shows("")

	// A command whose line was replaced leaves the new line alone.
	sets := func() *exec.Cmd {
		t.Helper()
		c := follow()
		r.until("its line", func() bool { return tmux("show-options", "-gqv", "@teamctl_by") == strconv.Itoa(c.Process.Pid) })
		return c
	}
	one := sets()
	two := sets()
	for _, c := range []*exec.Cmd{one, two} {
		if got := tmux("show-options", "-gqv", "@teamctl"); got != "f ·1 0/1" {
			t.Errorf("the line is %q", got)
		}
		if err := c.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
		_ = c.Wait()
	}
	shows("")
}

// TestStatusOfTheSession checks that the status line of the team's session has the team's line
// and the keys that lead back.
func TestStatusOfTheSession(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "a", "--backend", "tmux", "--", "sleep", "10000")
	r.teamctl("task", "add", "one")
	_, pane := r.server("a")
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	c := exec.CommandContext(ctx, r.exe, "attach")
	c.Dir, c.Env = r.dir, append(r.env, "TERM=xterm-256color")
	tty := startOnTerminal(t, c, 120, 36)
	var seen strings.Builder
	output := readTerminal(tty, &seen)
	for _, want := range []string{"f ·1 0/1", "C-b d: back"} {
		r.until(want, func() bool { return strings.Contains(output.see(seen.String), want) })
	}
	r.command("tmux", "-S", pane.Socket, "detach-client", "-s", "teamctl-f")
	if err := c.Wait(); err != nil {
		t.Errorf("attach: %v", err)
	}
	output.close()
}
