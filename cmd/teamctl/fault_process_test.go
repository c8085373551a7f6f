package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// These tests cover faults of agents and of their terminals.

func TestFault06IgnoresSIGTERM(t *testing.T) {
	r := newFaultRig(t)
	r.agent("deaf", "always", "bash", "-c", `trap "" TERM HUP INT; setsid bash -c 'trap "" TERM; exec tail -f /dev/null' & while :; do read -t 9 < <(tail -f /dev/null); done`)
	p := r.proc("deaf")
	r.until("its child", func() bool { return len(proc.ByGeneration(p.Generation)) > 2 })
	began := time.Now()
	r.teamctl("stop", "deaf")
	if took := time.Since(began); took < 9*time.Second || took > patience {
		t.Errorf("the stop took %s, want the grace of 10 s", took)
	}
	if left := proc.ByGeneration(p.Generation); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if m := r.members()["deaf"]; m.ExitText != "signal SIGKILL" || m.Observed != team.Completed {
		t.Errorf("%s, %s", m.Observed, m.ExitText)
	}
}

func TestFault07StoppedAgent(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	r.until("it to hold", func() bool { return strings.Contains(r.teamctl("logs", "a"), "holding") })
	p := r.proc("a")
	if err := proc.Signal(p.Shim, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := proc.Signal(p.Agent, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.teamctl("stop", "a")
	// It exited by itself, before the end of the grace period.
	if m := r.members()["a"]; m.ExitText != "exit 0" || proc.Alive(p.Agent) || proc.Alive(p.Shim) {
		t.Errorf("%s; agent alive %v, shim alive %v", m.ExitText, proc.Alive(p.Agent), proc.Alive(p.Shim))
	}
}

func TestFault08ForksAndExits(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "bash", "-c", `setsid bash -c 'trap "" TERM HUP; exec tail -f /dev/null' & setsid tail -f /dev/null & sleep 0.2; exit 5`)
	p := r.proc("a")
	m := r.state("a", team.Failed)
	if m.ExitText != "exit 5" {
		t.Errorf("exit is %q", m.ExitText)
	}
	if left := proc.ByGeneration(p.Generation); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestFault12ExecFailure(t *testing.T) {
	r := newFaultRig(t)
	bad := filepath.Join(r.dir, "bad")
	if err := os.WriteFile(bad, []byte("#!/no/such/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(r.dir, "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, argv := range map[string]string{"missing": "/no/such/program", "bad": bad, "plain": plain} {
		_, err := r.try(r.exe, "spawn", name, "--worktree", "none", "--restart", "always", "--", argv)
		if err == nil || !strings.Contains(err.Error(), argv) {
			t.Errorf("%s: %v, want an error that names %s", name, err, argv)
		}
		if _, ok := r.members()[name]; ok {
			t.Errorf("%s is on the roster", name)
		}
	}
}

// TestShimKilledIsUnknown checks that the exit of an agent whose shim was killed is unknown, and
// that the agent is ended before the next one starts.
func TestShimKilledIsUnknown(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "on-failure", "fakeagent", "hold")
	p := r.proc("a")
	r.kill(p.Shim)
	r.until("a new generation", func() bool {
		m := r.members()["a"]
		return m.Observed == team.Running && m.Generation != p.Generation
	})
	if proc.Alive(p.Agent) {
		t.Error("the old agent lives beside the new one")
	}
	out := r.teamctl("events", "--what", "member.state", "--json")
	if strings.Count(out, `"exit unknown"`) == 0 || strings.Contains(out, `"exit 0"`) {
		t.Errorf("events: %s", out)
	}
}

// TestFault18TmuxServerKilled checks that processes that survive the server because they ignore
// SIGHUP are ended, and that every member is restarted once on a new server.
func TestFault18TmuxServerKilled(t *testing.T) {
	r := newFaultRig(t)
	r.agent("plain", "on-failure", "fakeagent", "hold")
	r.agent("nohup", "on-failure", "bash", "-c", `trap "" HUP; while :; do read -t 9 < <(tail -f /dev/null); done`)
	was := r.members()
	plain, nohup := r.proc("plain"), r.proc("nohup")
	server, pane := r.server("plain")
	r.kill(server)
	for name, m := range was {
		r.until(name+" on a new server", func() bool {
			is := r.members()[name]
			return is.Observed == team.Running && is.Generation != m.Generation && is.Restarts == 1
		})
	}
	for _, old := range []string{plain.Generation, nohup.Generation} {
		if left := proc.ByGeneration(old); len(left) > 0 {
			t.Errorf("survivors: %v", left)
		}
	}
	if s, p := r.server("plain"); s == server || !proc.Alive(s) || p.Socket != pane.Socket {
		t.Errorf("server %+v, was %+v", s, server)
	}
}

func TestFault19PersonKillsPane(t *testing.T) {
	r := newFaultRig(t)
	r.agent("again", "on-failure", "fakeagent", "hold")
	r.agent("never", "never", "fakeagent", "hold")
	gen := r.members()["again"].Generation
	for _, name := range []string{"again", "never"} {
		_, p := r.server(name)
		r.command("tmux", "-S", p.Socket, "kill-pane", "-t", p.PaneID)
	}
	if m := r.state("never", team.Failed); !strings.Contains(m.Reason, "pane") {
		t.Errorf("reason %q", m.Reason)
	}
	r.until("a new pane", func() bool {
		m := r.members()["again"]
		return m.Observed == team.Running && m.Generation != gen
	})
}

// TestFault20PaneIDsOfAnotherServer checks that a foreign server on the team's socket path, whose
// panes are numbered from %0 as well, is not affected by what is recorded of the team's panes.
func TestFault20PaneIDsOfAnotherServer(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	r.agent("b", "on-failure", "fakeagent", "hold")
	server, pane := r.server("a")
	r.kill(r.supervisor())
	r.kill(server)
	_ = os.Remove(pane.Socket)
	foreign := func(args ...string) string {
		return r.command(append([]string{"tmux", "-f", "/dev/null", "-S", pane.Socket}, args...)...)
	}
	foreign("new-session", "-d", "-s", "mine", "tail -f /dev/null")
	for range 4 {
		foreign("split-window", "-t", "mine", "tail -f /dev/null")
		foreign("select-layout", "-t", "mine", "tiled")
	}
	list := func() string { return foreign("list-panes", "-t", "mine", "-F", "#{pane_id} #{pane_pid} #{pane_dead}") }
	was := list()
	r.state("a", team.Failed)
	r.until("b again", func() bool { return r.members()["b"].Observed == team.Running })
	r.teamctl("shutdown")
	if is := list(); is != was {
		t.Errorf("panes of the other server were\n%sand are\n%s", was, is)
	}
	foreign("kill-session", "-t", "mine")
}

// TestFault23And24InstantExits checks that an agent that exits at once keeps its status, even if
// tmux loses the SIGCHLD of a pane (before 3.6, about one in twenty).
func TestFault23And24InstantExits(t *testing.T) {
	r := newFaultRig(t)
	n := 30
	if testing.Short() {
		n = 8
	}
	r.teamctl("spawn", "i", "-n", fmt.Sprint(n), "--worktree", "none", "--restart", "never", "--", "fakeagent", "exit", "7")
	r.until("all to end", func() bool {
		for _, m := range r.members() {
			if m.Observed != team.Failed {
				return false
			}
		}
		return true
	})
	for name, m := range r.members() {
		if m.ExitText != "exit 7" {
			t.Errorf("%s: %q", name, m.ExitText)
		}
		// The shim reports the exit; the output arrives through tmux and the log writer.
		r.until("the output of "+name, func() bool { return strings.Contains(r.teamctl("logs", name), "I am "+name+" of f") })
	}
}

// TestFault25SimilarNames checks that names are distinguished even if tmux would match them by
// prefix or change them.
func TestFault25SimilarNames(t *testing.T) {
	r := newFaultRig(t)
	var got []string
	for _, name := range []string{"x", "x2", "x.y", "x:y"} {
		before := r.members()
		r.agent(name, "never", "fakeagent", "hold")
		for n := range r.members() {
			if _, ok := before[n]; !ok {
				got = append(got, n)
			}
		}
	}
	if len(got) != 4 {
		t.Fatalf("members %v", got)
	}
	for i, name := range got {
		r.teamctl("stop", name)
		for j, other := range got {
			want := team.Running
			if j <= i {
				want = team.Completed
			}
			if m := r.members()[other]; m.Observed != want {
				t.Errorf("after the stop of %s %s is %s, want %s", name, other, m.Observed, want)
			}
		}
	}
}

// TestWorktreeDeleted checks that a worktree deleted under a worker is restored with everything
// that was committed, and that the next task is done there.
func TestWorktreeDeleted(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "w")
	r.teamctl("task", "add", "one", "--run", "echo one > one")
	r.teamctl("wait", "--timeout", "5m")
	m := r.members()["w"]
	if err := os.RemoveAll(m.Worktree); err != nil {
		t.Fatal(err)
	}
	r.teamctl("restart", "w")
	r.teamctl("task", "add", "two", "--run", "cat one")
	r.teamctl("wait", "--timeout", "5m")
	if out := r.command("git", "-C", "repo", "worktree", "prune", "-n", "-v"); out != "" {
		t.Errorf("registrations without a directory: %s", out)
	}
	if is := r.members()["w"]; is.Branch != m.Branch || is.Worktree != m.Worktree {
		t.Errorf("%s in %s, was %s in %s", is.Branch, is.Worktree, m.Branch, m.Worktree)
	}
}
