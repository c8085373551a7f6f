package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/pty/vt"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// These tests check that a supervisor and the members it starts have the person's environment,
// whichever process starts the supervisor.

// environ returns the environment that a process was executed with. During exec it is empty for a
// moment: the parent sees the exec before the kernel has set the environment.
func (r *faultRig) environ(id backends.ProcID) map[string]string {
	r.Helper()
	var data []byte
	r.until(fmt.Sprintf("process %d to have an environment", id.PID), func() bool {
		var err error
		if data, err = os.ReadFile(fmt.Sprintf("/proc/%d/environ", id.PID)); err != nil {
			if _, perr := os.Stat("/proc/self/environ"); perr != nil {
				r.Skipf("no process table to see environments in: %v", err)
			}
			r.Fatal(err)
		}
		return len(data) > 0
	})
	env := map[string]string{}
	for kv := range strings.SplitSeq(string(data), "\x00") {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return env
}

// scribe spawns a member with variables of its own that runs lines of shell written by the test.
func (r *faultRig) scribe() {
	r.Helper()
	script := `export ONLY_MEMBER=1 GIT_AUTHOR_NAME=scribe GIT_AUTHOR_EMAIL=scribe@example.com PATH="$0/scribe:$PATH"; cd "$0"
n=1; while :; do until [ -e line.$n ]; do sleep 0.2; done; sh ./line.$n >out.$n 2>&1; echo $? >status.$n; n=$((n+1)); done`
	r.teamctl("spawn", "scribe", "--worktree", "none", "--restart", "never", "--", "sh", "-c", script, r.dir)
}

// writes makes the scribe run line number n, and returns its output. The line must exit with
// status 0.
func (r *faultRig) writes(n int, line string) string {
	r.Helper()
	path := filepath.Join(r.dir, "line."+fmt.Sprint(n))
	if err := os.WriteFile(path+".new", []byte(line+"\n"), 0o600); err != nil {
		r.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		r.Fatal(err)
	}
	var status []byte
	r.until("the scribe to write "+line, func() bool {
		status, _ = os.ReadFile(filepath.Join(r.dir, "status."+fmt.Sprint(n)))
		return len(status) > 0
	})
	out, err := os.ReadFile(filepath.Join(r.dir, "out."+fmt.Sprint(n)))
	if err != nil || string(status) != "0\n" {
		r.Errorf("%s: status %s, %v\n%s", line, status, err, out)
	}
	return string(out)
}

// bereave kills the supervisor and the agent of a member that will be restarted.
func (r *faultRig) bereave(member string) {
	r.Helper()
	agent := r.proc(member).Agent
	r.gone(syscall.SIGKILL)
	if err := proc.Signal(agent, syscall.SIGKILL); err != nil {
		r.Fatal(err)
	}
	for proc.Alive(agent) {
		r.tick()
	}
}

// personal checks that a process has the person's environment and no variable of the scribe's.
func (r *faultRig) personal(what string, id backends.ProcID, person string) {
	r.Helper()
	env := r.environ(id)
	if env["ONLY_PERSON"] != person || env["ONLY_MEMBER"] != "" || env["GIT_AUTHOR_NAME"] != "a" || strings.Contains(env["PATH"], "/scribe") {
		r.Errorf("%s: ONLY_PERSON=%q ONLY_MEMBER=%q GIT_AUTHOR_NAME=%q PATH=%q", what, env["ONLY_PERSON"], env["ONLY_MEMBER"], env["GIT_AUTHOR_NAME"], env["PATH"])
	}
	for name, value := range r.environ(r.proc("scribe").Agent) {
		if strings.HasPrefix(name, "TEAMCTL_") && env[name] == value && slices.Contains([]string{
			team.EnvAgentID, team.EnvAgentName, team.EnvGen, team.EnvToken, team.EnvColor, team.EnvTaskID,
		}, name) {
			r.Errorf("%s has the scribe's %s", what, name)
		}
	}
}

// started waits for the next supervisor to restart the member, and checks that both have the
// person's environment.
func (r *faultRig) started(by, member string, before backends.ProcID, person string) {
	r.Helper()
	r.personal("the supervisor started by "+by, r.supervisor(), person)
	var agent backends.ProcID
	r.until("the agent to be started again after "+by, func() bool {
		data, err := os.ReadFile(r.layout.SupervisorPID())
		if _, adopted, perr := team.ParseSupervisorPID(data); err != nil || perr != nil || !adopted {
			return false
		}
		agent = r.proc(member).Agent
		return agent != before && proc.Alive(agent)
	})
	r.personal("the agent started after "+by, agent, person)
}

// TestSupervisorHasThePersonsEnvironment checks that a command of a member restarts the
// supervisor, through every door, and that the supervisor and the agents that it starts have the
// person's environment.
func TestSupervisorHasThePersonsEnvironment(t *testing.T) {
	r := newFaultRig(t)
	r.env = append(r.env, "ONLY_PERSON=1")
	agents := []string{"a", "b", "c", "d", "e", "f"} // one for each start, since a second start takes longer
	for _, name := range agents {
		r.agent(name, "always", "fakeagent", "hold")
	}
	r.scribe()
	request := func(id int, method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	}
	mcp := "(echo '" + request(1, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`) +
		"'; echo '" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` +
		"'; echo '" + request(2, "tools/call", `{"name":"TaskList","arguments":{}}`) +
		"'; until grep -q '\"id\":2' mcp.out; do sleep 0.2; done) | teamctl mcp >mcp.out"
	for i, line := range []string{
		"teamctl send a hello",
		`teamctl call TaskCreate '{"subject":"x","description":"x"}'`,
		mcp,
		// It still runs in a process of the member.
		"env -u TEAMCTL_GENERATION teamctl task ls",
	} {
		before := r.proc(agents[i]).Agent
		r.bereave(agents[i])
		r.writes(i+1, line)
		r.started(line, agents[i], before, "1")
	}
	if n := len(r.mail("a")); n != 1 {
		t.Errorf("%d messages", n)
	}
	fi, err := os.Stat(r.layout.SupervisorEnv())
	if err != nil || fi.Mode() != 0o600 {
		t.Errorf("the record: %v, %v", fi, err)
	}
	// A supervisor started by a person's command records the environment again.
	r.env = append(r.env, "ONLY_PERSON=2")
	before := r.proc("e").Agent
	r.bereave("e")
	r.teamctl("task", "ls")
	r.started("the person", "e", before, "2")
	before = r.proc("f").Agent
	r.bereave("f")
	r.writes(5, "teamctl status")
	r.started("a member after that", "f", before, "2")
}

// TestMemberStartsNoSupervisorWithItsOwnEnvironment checks that a member's command starts no
// supervisor if no person's environment is recorded, and works without one.
func TestMemberStartsNoSupervisorWithItsOwnEnvironment(t *testing.T) {
	r := newFaultRig(t)
	r.env = append(r.env, "ONLY_PERSON=1")
	r.agent("a", "never", "fakeagent", "hold")
	r.scribe()
	r.gone(syscall.SIGKILL)
	if err := os.Remove(r.layout.SupervisorEnv()); err != nil {
		t.Fatal(err)
	}
	r.writes(1, "teamctl send a hello && teamctl task ls && teamctl ps && env -u TEAMCTL_GENERATION teamctl task ls")
	out := r.writes(2, "teamctl capture a; [ $? = 7 ]")
	if !strings.Contains(out, "cannot start the first one") || !strings.Contains(out, "teamctl ps, in a shell of your own") {
		t.Errorf("an order of a member: %s", out)
	}
	out = r.writes(3, "teamctl supervise --team f; [ $? = 5 ]")
	if !strings.Contains(out, "a member cannot run the supervisor") {
		t.Errorf("the supervisor itself: %s", out)
	}
	if sup := r.supervisorNow(); proc.Alive(sup) {
		t.Errorf("a member has started a supervisor, pid %d", sup.PID)
	}
	r.teamctl("ps")
	r.personal("the supervisor started by the person", r.supervisor(), "1")
}

// TestSupervisorGoneUnderBoard checks that an open board restarts the supervisor.
func TestSupervisorGoneUnderBoard(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	c := exec.Command(r.exe, "board")
	c.Dir, c.Env = r.dir, append(r.env, "TERM=xterm-256color")
	tty := startOnTerminal(t, c, 80, 24)
	drawn := readTerminal(tty, io.Discard)
	for range 3 {
		r.gone(syscall.SIGKILL)
		r.until("the board to start a supervisor", func() bool { return proc.Alive(r.supervisorNow()) })
	}
	if _, err := tty.WriteString("q"); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("the board: %v", err)
	}
	drawn.close()
}

// TestBoardSaysThatNoSupervisorIsUp checks that the board in the lead's pane starts no
// supervisor, and that it reports since when none is running.
func TestBoardSaysThatNoSupervisorIsUp(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	c := exec.Command(r.exe, "board")
	c.Dir, c.Env = r.dir, append(r.env, "TERM=xterm-256color", team.EnvDetached+"=1")
	tty := startOnTerminal(t, c, 100, 30)
	screen := vt.New(100, 30, 0)
	drawn := readTerminal(tty, screen)
	text := func() string { return drawn.see(func() string { return screen.Text(0) }) }
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", text())
			_ = c.Process.Kill() // if the test failed earlier
		}
		drawn.close()
	})
	const down = "supervisor down since "
	r.until("the member", func() bool { s := text(); return strings.Contains(s, "TASKS ") && !strings.Contains(s, down) })
	r.gone(syscall.SIGKILL)
	r.until("the notice that no supervisor is running", func() bool { return strings.Contains(text(), down) })
	r.teamctl("ps") // starts a supervisor, as the person
	r.until("the end of that notice", func() bool { return !strings.Contains(text(), down) })
	if _, err := tty.WriteString("q"); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("the board: %v", err)
	}
}

// TestSupervisorGoneUnderLogs checks that logs --follow restarts the supervisor.
func TestSupervisorGoneUnderLogs(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	c := exec.Command(r.exe, "logs", "-f", "a")
	c.Dir, c.Env = r.dir, r.env
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.gone(syscall.SIGKILL)
		r.until("logs to start a supervisor", func() bool { return proc.Alive(r.supervisorNow()) })
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	_ = c.Wait() // the signal ends it
}
