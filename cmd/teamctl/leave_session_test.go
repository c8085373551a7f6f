package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
)

// TestLeaveTeamSession checks that q on the board of the team's session detaches the person and
// leaves the board running, that a killed board is started again, and that attach restarts a pane that is dead.
func TestLeaveTeamSession(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "a", "--backend", "tmux", "--", "sleep", "10000")
	_, pane := r.server("a")
	tmux := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(r.command(append([]string{"tmux", "-u", "-S", pane.Socket}, args...)...))
	}
	lead := func() (pid string, dead bool) {
		at, pid, _ := strings.Cut(tmux("display-message", "-p", "-t", "teamctl-f:0.0", "#{pane_dead} #{pane_pid}"), " ")
		return pid, at == "1"
	}
	drawn := func() bool {
		return strings.Contains(tmux("capture-pane", "-p", "-t", "teamctl-f:0.0"), "MEMBERS")
	}
	visit := func(act func()) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		c := exec.CommandContext(ctx, r.exe, "attach")
		c.Dir, c.Env = r.dir, append(r.env, "TERM=xterm-256color")
		tty := startOnTerminal(t, c, 120, 36)
		output := readTerminal(tty, io.Discard)
		r.until("a client in the session", func() bool {
			return strings.Contains(tmux("list-clients", "-F", "#{client_width}"), "120")
		})
		r.until("the board", drawn)
		act()
		if _, err := tty.WriteString("q"); err != nil {
			t.Error(err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("attach: %v", err)
		}
		output.close()
	}
	// screen is the program of the pane, a child of what starts it again.
	screen := func() (id backends.ProcID, ok bool) {
		pid, _ := lead()
		all, err := os.ReadDir("/proc")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			n, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			if id, parent, err := proc.IdentifyBelow(n); err == nil && strconv.Itoa(parent) == pid {
				return id, true
			}
		}
		return id, false
	}
	toBoard := func() { tmux("select-pane", "-t", "teamctl-f:0.0") }
	visit(toBoard)
	pid, dead := lead()
	if dead {
		t.Fatal("q ended the board")
	}
	first, ok := screen()
	if !ok {
		t.Fatal("the pane has no screen")
	}
	r.kill(first)
	r.until("another screen", func() bool {
		next, ok := screen()
		return ok && next != first && drawn()
	})
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	id, err := proc.Identify(n)
	if err != nil {
		t.Fatal(err)
	}
	r.kill(id)
	r.until("the dead pane", func() bool { _, dead := lead(); return dead })
	visit(toBoard)
	if again, dead := lead(); dead || again == pid {
		t.Errorf("after attach: pane of %s, dead %v; was %s", again, dead, pid)
	}
}
