package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// These tests cover a supervisor that has exited or does not answer while commands need it.

// gone ends the supervisor with a signal and waits until it has exited.
func (r *faultRig) gone(sig syscall.Signal) {
	r.Helper()
	sup := r.supervisor()
	if err := proc.Signal(sup, sig); err != nil {
		r.Fatal(err)
	}
	for proc.Alive(sup) {
		r.tick()
	}
}

// halt stops a process and waits until all of its threads have stopped.
func (r *faultRig) halt(id backends.ProcID) {
	r.Helper()
	if err := proc.Signal(id, syscall.SIGSTOP); err != nil {
		r.Fatal(err)
	}
	r.until("the process to stop", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", id.PID))
		for _, path := range threads {
			stat, err := os.ReadFile(path)
			if err == nil && !strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " T") {
				return false
			}
		}
		return true
	})
}

// follows starts a command that writes until it is killed at the end of the test. The function that
// is returned returns what it has written.
func (r *faultRig) follows(args ...string) (written func() string) {
	r.Helper()
	file, err := os.Create(filepath.Join(r.TempDir(), "out"))
	if err != nil {
		r.Fatal(err)
	}
	c := exec.Command(r.exe, args...)
	c.Dir, c.Env, c.Stdout = r.dir, r.env, file
	err = c.Start()
	_ = file.Close() // the command has its own
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	})
	return func() string {
		b, err := os.ReadFile(file.Name())
		if err != nil {
			r.Fatal(err)
		}
		return string(b)
	}
}

// TestSupervisorGone checks that any command starts the next supervisor while members should be
// running, not only commands that show members.
func TestSupervisorGone(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	r.teamctl("task", "add", "first")
	for i, line := range []string{
		"task add x", "task ls", "send a hello", "board --json", "task cancel 2", "wait --member a --state running", "status", "inbox", "message ls",
		"settings", "call TaskList {}", "call TaskCreate {\"subject\":\"y\",\"description\":\"y\"}", "interrupt a",
	} {
		r.gone([]syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[i%2])
		out, err := r.try(append([]string{r.exe}, strings.Fields(line)...)...)
		if err != nil && !strings.HasPrefix(line, "interrupt") { // it has no turn to interrupt
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		if sup := r.supervisor(); !proc.Alive(sup) {
			t.Errorf("no supervisor after %s", line)
		}
	}
}

// TestSupervisorGoneUnderWait checks that a command that waits for the team's work starts the
// next supervisor too, because only a supervisor restarts the worker that does the work.
func TestSupervisorGoneUnderWait(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "w", "--agent", "worker", "--worktree", "none", "--restart", "always")
	gate := r.dir + "/gate"
	r.teamctl("task", "add", "one", "--run", "until [ -e "+gate+" ]; do sleep 0.2; done")
	r.until("the task to begin", func() bool { return strings.Contains(r.teamctl("task", "ls"), "in_progress") })
	var wg sync.WaitGroup
	var out string
	var err error
	wg.Go(func() { out, err = r.try(r.exe, "wait") })
	for range 3 {
		r.gone(syscall.SIGKILL)
	}
	sup, agent := r.supervisor(), r.proc("w").Agent
	for _, id := range []backends.ProcID{sup, agent} {
		if err := proc.Signal(id, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	r.command("touch", gate)
	wg.Wait()
	if err != nil {
		t.Errorf("wait: %v\n%s", err, out)
	}
}

// TestSupervisorEndsUnderCommands checks that commands that run while the supervisor is shutting
// down are carried out, by this one or by the next.
func TestSupervisorEndsUnderCommands(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	rounds := 15
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		// A supervisor that was signalled may have carried out a whole round before it exited.
		var sup backends.ProcID
		r.until("a supervisor", func() bool {
			r.teamctl("ps")
			sup = r.supervisorNow()
			return sup != backends.ProcID{}
		})
		var wg sync.WaitGroup
		for i, line := range []string{"task add x", "send a hello", "ps", "capture a", "wait --member a --state running"} {
			if i == 1 {
				if err := proc.Signal(sup, syscall.SIGTERM); err != nil {
					t.Error(err)
				}
			}
			wg.Go(func() {
				if out, err := r.try(append([]string{r.exe}, strings.Fields(line)...)...); err != nil {
					t.Errorf("%s: %v\n%s", line, err, out)
				}
			})
		}
		wg.Wait()
	}
	if tasks, mail := len(r.subjects()), len(r.mail("a")); tasks != rounds || mail != rounds {
		t.Errorf("%d tasks and %d messages after %d rounds", tasks, mail, rounds)
	}
}

// TestSupervisorStopped checks that no command waits longer than ten seconds, by its own measure,
// for a stopped supervisor. Each one reports the supervisor's pid and has no effect.
func TestSupervisorStopped(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	r.teamctl("spawn", "w", "--agent", "worker", "--worktree", "none")
	r.teamctl("task", "add", "one", "--run", "until [ -e "+r.dir+"/gate ]; do sleep 0.2; done")
	r.until("the task to begin", func() bool { return strings.Contains(r.teamctl("task", "ls"), "in_progress") })
	sup := r.supervisor()
	r.halt(sup)
	defer func() { _ = proc.Signal(sup, syscall.SIGCONT) }()
	pid := strconv.Itoa(sup.PID)
	var wg sync.WaitGroup
	for _, line := range []string{
		"send a hello", "task add x", "task claim 1", "spawn b --worktree none -- fakeagent hold", "stop a", "restart a", "capture a", "delete f --force", "ps", "status",
		"wait", "wait --member a --state idle", "events --follow", "call TaskCreate {\"subject\":\"x\",\"description\":\"x\"}",
	} {
		wg.Go(func() {
			out, err := r.try(append([]string{r.exe}, strings.Fields(line)...)...)
			text := out
			if err != nil {
				text += err.Error()
			}
			if code := exitCode(err); code != team.ExitStatus(team.Errorf(team.CodeUnavailable, "")) || !strings.Contains(text, "pid "+pid) {
				t.Errorf("%s: status %d: %s", line, code, text)
			}
			_, waited, _ := strings.Cut(text, "(waited ")
			waited, _, _ = strings.Cut(waited, " s)")
			if seconds, err := strconv.Atoi(waited); err != nil || seconds > 10 {
				t.Errorf("%s: waited %d s, %v: %s", line, seconds, err, text)
			}
		})
	}
	wg.Go(func() {
		if out, _ := r.try(r.exe, "doctor"); !strings.Contains(out, "pid "+pid+", does not answer") {
			t.Errorf("doctor does not report it:\n%s", out)
		}
	})
	for line, want := range map[string]string{
		"ls": " ?/2 ", "ls --json": `"supervisorSilent": true`, "status --format plain": "f ? !1 ", "status --all --format tmux": "f ? !1 ",
		"board": "the supervisor does not answer", "show": "? a  ", "board --json": `"supervisorSilent": true`,
	} {
		wg.Go(func() {
			out, err := r.try(append([]string{r.exe}, strings.Fields(line)...)...)
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%s: %v; no %q in\n%s", line, err, want, out)
			}
		})
	}
	wg.Wait()
	list := r.follows("ls", "--watch")
	r.until("the list to report it", func() bool { return strings.Contains(list(), " ?/2 ") })
	if err := proc.Signal(sup, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	r.until("the list to be current", func() bool { return strings.Contains(list(), " 2/2 ") })
	if m := r.members(); len(m) != 2 || len(r.subjects()) != 1 || len(r.mail("a")) != 0 {
		t.Errorf("something was done: %+v, tasks %v, mail %v", m, r.subjects(), r.mail("a"))
	}
	r.command("touch", "gate")
	r.teamctl("wait", "--timeout", "5m")
}

// TestWorkerAtAStoppedSupervisor checks that the retries of a worker while the supervisor is
// stopped are one operation: its task is completed once, and each of the next ones is claimed
// once.
func TestWorkerAtAStoppedSupervisor(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "w", "--agent", "worker", "--worktree", "none", "--backend", "pty")
	for _, task := range []string{"one", "two", "three"} {
		r.teamctl("task", "add", task, "--run", "until [ -e "+r.dir+"/gate ]; do sleep 0.2; done")
	}
	r.until("the task to begin", func() bool { return strings.Contains(r.teamctl("task", "ls"), "in_progress") })
	sup := r.supervisor()
	r.halt(sup)
	defer func() { _ = proc.Signal(sup, syscall.SIGCONT) }()
	r.command("touch", "gate")
	screen := func() string {
		b, err := os.ReadFile(r.layout.Bundle("w").Log())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	r.until("the worker to try again", func() bool { return strings.Contains(screen(), "does not answer: it is stopped") })
	if err := proc.Signal(sup, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	r.teamctl("wait", "--timeout", "5m")
	r.until("the worker to be idle", func() bool { // it was idle before the first task, too
		_, after, _ := strings.Cut(screen(), "── task 1 completed")
		return strings.Contains(after, "idle, waiting")
	})
	text := screen()
	for _, id := range []string{"1", "2", "3"} {
		if strings.Count(text, "── task "+id+" completed") != 1 {
			t.Errorf("task %s is not completed once", id)
		}
	}
	if t.Failed() || strings.Contains(text, "attempt 2") || strings.Contains(text, "taken away") {
		t.Errorf("screen:\n%s", text)
	}
}
