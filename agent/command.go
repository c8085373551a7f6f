package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

const (
	killGrace = 5 * time.Second // default of Env.Grace
	// drainGrace is how long output may still come after the command has ended: a
	// process substitution outlives its bash for a moment and its last lines count.
	drainGrace = time.Second
	// signalGrace is how long a command that a signal ended waits for the end of
	// our own context: a stop signals the whole tree, and then it did not fail.
	signalGrace = 500 * time.Millisecond
	// checkEvery is the shortest time between two looks whether a task is still ours.
	checkEvery = 250 * time.Millisecond
	renewEvery = ledger.Lease / 4
)

// ending is why a command ended.
type ending int

const (
	byItself ending = iota
	byTimeout
	byContext // ctx ended
	byLoss    // the task was taken away
	byError   // it could not be started
)

// ran is what became of a command.
type ran struct {
	how  ending
	code int    // exit status; 128 + n for signal n, 124 for the timeout, 127 when it could not start
	sig  string // name of the signal that ended it
	tail string
	err  error // of byError, or what took the task away
}

// ok reports success.
func (r ran) ok() bool { return r.how == byItself && r.code == 0 }

// why says in words how it ended.
func (r ran) why(limit time.Duration) string {
	switch r.how {
	case byTimeout:
		return fmt.Sprintf("timed out after %s", limit)
	case byError:
		return r.err.Error()
	case byContext:
		return "the worker was stopped"
	case byLoss:
		return "the task was taken away"
	case byItself:
	}
	if r.sig != "" {
		return "ended by " + r.sig
	}
	return fmt.Sprintf("exit %d", r.code)
}

// command runs script with bash in a session and process group of its own and returns when
// the whole group is gone. While it runs, the lease of the task is renewed and
// changes of the ledger are looked at.
func (w *worker) command(ctx context.Context, t ledger.Task, script string, limit time.Duration) ran {
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = w.env.Dir
	cmd.Env = w.environ(t)
	// A session of its own makes a group of its own, and has no terminal: what asks
	// at /dev/tty (a password, a host key) fails at once instead of being stopped for ever.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}

	r, wr, err := os.Pipe()
	if err != nil {
		return ran{how: byError, code: 127, err: fmt.Errorf("run a command: %w", err)}
	}
	defer func() { _ = r.Close() }()
	cmd.Stdout, cmd.Stderr = wr, wr
	err = cmd.Start()
	_ = wr.Close()
	if err != nil {
		return ran{how: byError, code: 127, err: fmt.Errorf("start bash: %w", err)}
	}

	var end tail
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.MultiWriter(w.out, &end), r)
	}()
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		err = cmd.Wait() // read after exited is closed
	}()

	res := w.watch(ctx, t, exited, limit)
	group := cmd.Process.Pid
	if res.how != byItself {
		endGroup(group, exited, w.env.Grace)
	}
	within(drained, drainGrace)
	sweepGroup(group, w.env.Grace)
	// Whoever still holds the pipe has left the group; its output is not the task's.
	within(drained, drainGrace)
	_ = r.SetReadDeadline(time.Now())
	<-drained

	if res.how == byItself {
		res.code, res.sig = status(err)
		if res.sig != "" || res.code > 128 && res.code < 160 {
			if within(ctx.Done(), signalGrace) {
				res.how = byContext
			}
		}
	}
	if res.how == byTimeout {
		res.code = 124
	}
	res.tail = end.text()
	return res
}

// watch returns when the command has exited or has to be ended.
func (w *worker) watch(ctx context.Context, t ledger.Task, exited <-chan struct{}, limit time.Duration) ran {
	var timeout <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	renew := time.NewTicker(renewEvery)
	defer renew.Stop()
	var due <-chan time.Time // of a look that came too soon after the last one
	changes, last := w.changes, time.Time{}
	look := func() error {
		last, due = time.Now(), nil
		return w.stillOurs(ctx, t)
	}
	for {
		var err error
		select {
		case <-exited:
			return ran{how: byItself}
		case <-ctx.Done():
			return ran{how: byContext}
		case <-timeout:
			return ran{how: byTimeout}
		case _, ok := <-changes:
			if !ok {
				changes = nil // the loop notices after the task
				continue
			}
			if d := checkEvery - time.Since(last); d > 0 {
				if due == nil {
					due = time.After(d)
				}
				continue
			}
			err = look()
		case <-due:
			err = look()
		case <-renew.C:
			// Without a supervisor nobody else renews it. Failing is told by stillOurs.
			c, cancel := context.WithTimeout(ctx, writeLimit)
			_, _ = w.env.Ledger.RenewLeases(c, []string{w.id.Session}, ledger.Lease)
			cancel()
			err = look()
		}
		if err != nil {
			return ran{how: byLoss, err: err}
		}
	}
}

// stillOurs returns an error when the ledger says that the task is not ours any
// more. Not being able to ask is no such news.
func (w *worker) stillOurs(ctx context.Context, t ledger.Task) error {
	now, err := w.env.Ledger.Task(ctx, t.ID)
	switch {
	case team.IsCode(err, team.CodeNotFound):
		return fmt.Errorf("task %s is gone", t.ID)
	case err != nil:
		return nil // see above
	case now.Owner != w.id.Session || now.Attempt != t.Attempt:
		return fmt.Errorf("task %s is not ours any more", t.ID)
	case now.Status != team.TaskClaimed && now.Status != team.TaskInProgress:
		return fmt.Errorf("task %s is %s", t.ID, now.Status)
	}
	return nil
}

// environ is the environment of a task's commands. Of a name that stands twice
// the last one counts (os/exec).
func (w *worker) environ(t ledger.Task) []string {
	env := append([]string(nil), w.env.Environ...)
	env = append(env,
		team.EnvTeam+"="+w.id.Team,
		team.EnvAgentID+"="+w.id.AgentID,
		team.EnvAgentName+"="+w.id.Name,
		team.EnvTaskID+"="+t.ID,
	)
	if w.env.Dir != "" {
		env = append(env, "PWD="+w.env.Dir)
	}
	return env
}

// endGroup ends a process group whose leader has not been waited for yet.
func endGroup(group int, exited <-chan struct{}, grace time.Duration) {
	signalGroup(group, syscall.SIGTERM)
	if !within(exited, grace) {
		signalGroup(group, syscall.SIGKILL)
	}
	<-exited
}

// sweepGroup ends what a command left in its group after its leader was waited
// for. The group's id stays taken while a process is in it, so the signals below
// cannot reach another's: between two looks a whole round of pids would have to
// go by.
func sweepGroup(group int, grace time.Duration) {
	if !groupAlive(group) {
		return
	}
	signalGroup(group, syscall.SIGTERM)
	if groupGone(group, grace) {
		return
	}
	signalGroup(group, syscall.SIGKILL)
	groupGone(group, grace) // only a process in the kernel's hands is left after this
}

// signalGroup sends sig, and SIGCONT so that a stopped process gets it.
func signalGroup(group int, sig syscall.Signal) {
	_ = syscall.Kill(-group, sig)
	_ = syscall.Kill(-group, syscall.SIGCONT)
}

// groupGone waits until no process of the group lives. There is no event for it.
func groupGone(group int, limit time.Duration) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for groupAlive(group) {
		select {
		case <-tick.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}

// within reports whether c is closed before d is over.
func within(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}

// status is the exit status and the signal of a finished command.
func status(err error) (int, string) {
	var ee *exec.ExitError
	switch {
	case err == nil:
		return 0, ""
	case errors.As(err, &ee):
		if ws, ok := ee.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return 128 + int(ws.Signal()), signalName(ws.Signal())
		}
		return ee.ExitCode(), ""
	default:
		return 1, "" // waiting failed: not known, and never shown as success
	}
}
