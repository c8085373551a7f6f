package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// TestWaitLooksOnceMore stops commands that wait for something until their limit has passed. It comes
// meanwhile, so that they must not say, once they are continued, that it did not come in time.
func TestWaitLooksOnceMore(t *testing.T) {
	r := newFaultRig(t)
	began := time.Now()
	env := map[string][]string{}
	for _, name := range []string{"v", "w"} {
		r.agent(name, "never", "fakeagent", "hold")
		r.state(name, team.Running)
		env[name] = slices.Clone(r.env)
		for k, v := range r.environ(r.proc(name).Agent) {
			if strings.HasPrefix(k, "TEAMCTL_") {
				env[name] = append(env[name], k+"="+v)
			}
		}
	}
	byW := func(args ...string) {
		t.Helper()
		cmd := exec.Command(r.exe, args...)
		cmd.Dir, cmd.Env = r.dir, env["w"]
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	r.teamctl("task", "add", "x")
	byW("task", "claim", "1")

	// They are stopped before it, as a rule also where commands take long.
	limit := 15*time.Second + 5*time.Since(began).Round(time.Second)
	type waiter struct {
		cmd *exec.Cmd
		id  backends.ProcID
		out bytes.Buffer
	}
	var all []*waiter
	began = time.Now()
	for _, x := range []struct {
		env  []string
		args []string
	}{
		{r.env, []string{"wait"}},
		{r.env, []string{"wait", "--member", "w", "--state", "stopped"}},
		{r.env, []string{"send", "w", "hello", "--wait=read"}},
		{env["v"], []string{"wait", "--mail"}},
		{env["v"], []string{"ask", "plan", "a plan", "--wait"}},
	} {
		w := &waiter{cmd: exec.Command(r.exe, append(x.args, "--timeout", limit.String())...)}
		w.cmd.Dir, w.cmd.Env, w.cmd.Stdout, w.cmd.Stderr = r.dir, x.env, &w.out, &w.out
		if err := w.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	r.until("a message and a request", func() bool {
		return strings.Contains(r.teamctl("inbox", "w"), "hello") && strings.Contains(r.teamctl("approvals"), "a plan")
	})
	for _, w := range all {
		id, err := proc.Identify(w.cmd.Process.Pid)
		if err != nil {
			t.Skipf("this machine does not stop %v before its limit: %v", w.cmd.Args, err)
		}
		w.id = id
		defer func() { _ = proc.Signal(id, syscall.SIGCONT) }()
		r.until(fmt.Sprint(w.cmd.Args, " to wait"), func() bool {
			files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", id.PID))
			return !proc.Alive(id) || slices.ContainsFunc(files, func(path string) bool {
				info, _ := os.ReadFile(path)
				return strings.Contains(string(info), "inotify wd:")
			})
		})
		if err := proc.Signal(id, syscall.SIGSTOP); err != nil {
			t.Skipf("this machine does not stop %v before its limit: %v", w.cmd.Args, err)
		}
		r.halt(id)
	}
	if time.Since(began) > limit {
		t.Skip("this machine does not stop them before their limit")
	}
	byW("inbox", "--consume")
	r.teamctl("approvals", "approve", "1")
	byW("task", "complete", "1")
	byW("send", "v", "hello")
	r.teamctl("kill", "w")
	<-time.After(time.Until(began.Add(limit + time.Second)))
	for _, w := range all {
		_ = proc.Signal(w.id, syscall.SIGCONT)
		if err := w.cmd.Wait(); err != nil {
			t.Errorf("%v: %v: %s", w.cmd.Args[1:], err, w.out.String())
		}
	}
}
