package run

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/childattr"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// Group is a control group for a command; *cgroup.Group implements it.
type Group interface {
	proc.Group
	FD() (*os.File, error)
}

// Cmd is a command and how to run it.
type Cmd struct {
	Command    string   // for bash -c
	Args       []string // $0, $1 and so on of Command
	Dir        string
	Env        []string // the whole environment except for the generation
	Generation string   // identifies its processes
	Group      Group    // nil: none
	Stdin      []byte
	Stdout     io.Writer
	Stderr     io.Writer // may be the same as Stdout
	Limit      time.Duration
	Grace      time.Duration // between SIGTERM and SIGKILL, also for what it leaves behind
	Enter      func() error  // changes the thread that starts it, to confine it; may be nil
}

// drain limits the wait for output after the exit of a command: a process
// substitution outlives its bash for a moment, and its last lines count.
const drain = time.Second

// Ended describes how a command ended, with everything that it had started.
type Ended struct {
	Code   int    // exit status; 128 + n for signal n, 124 at the limit, -1 if there is none
	Signal string // name of the signal that ended it
	Late   bool   // it was ended at its limit
	Cut    bool   // it was ended because ctx ended
	Err    error  // it could not be started, or it is unknown how it ended
}

// lateCode is the exit status of timeout(1).
const lateCode = 124

// Why describes how the command ended; limit is its time limit.
func (e Ended) Why(limit time.Duration) string {
	switch {
	case e.Err != nil:
		return "it could not be run: " + e.Err.Error()
	case e.Late:
		return "timed out after " + limit.String()
	case e.Cut:
		return "it was ended before it was through"
	case e.Signal != "":
		return "ended by " + e.Signal
	}
	return "exit " + strconv.Itoa(e.Code)
}

// OK reports whether it ended by itself, with status 0.
func (e Ended) OK() bool { return e.Err == nil && !e.Late && !e.Cut && e.Signal == "" && e.Code == 0 }

// Run runs a command and returns when none of its processes is left and all of
// its output has been written. An error means that some process is left.
func Run(ctx context.Context, c Cmd) (Ended, error) {
	if ctx.Err() != nil {
		return Ended{Code: -1, Cut: true}, nil
	}
	var group proc.Group
	var dir *os.File
	if c.Group != nil {
		group = c.Group
		var err error
		if dir, err = c.Group.FD(); err == nil { // otherwise it runs without
			defer func() { _ = dir.Close() }()
		}
	}
	cmd, err := start(c, dir)
	if err != nil && dir != nil { // the group may be the cause
		cmd, err = start(c, nil)
	}
	if err != nil {
		return Ended{Code: -1, Err: err}, nil
	}
	defer cmd.out.finish(drain)
	var late <-chan time.Time
	if c.Limit > 0 {
		timer := time.NewTimer(c.Limit)
		defer timer.Stop()
		late = timer.C
	}
	end, byItself := outcome(cmd.ended, late, ctx.Done())
	if byItself {
		cmd.out.wait(drain)
		return end, End(group, c.Generation, c.Grace)
	}
	err = endAll(group, cmd.pid, c.Generation, c.Grace)
	<-cmd.ended //nolint:errcheck // the status of a forced end says nothing
	return end, err
}

// outcome waits for the exit of a command alone: what it leaves in the background may keep its
// output open. The exit counts, although it is seen late only.
func outcome(exit <-chan error, late <-chan time.Time, cut <-chan struct{}) (end Ended, byItself bool) {
	select {
	case err := <-exit:
		return status(err), true
	case <-late:
		end = Ended{Code: lateCode, Late: true}
	case <-cut:
		end = Ended{Code: -1, Cut: true}
	}
	select {
	case err := <-exit:
		return status(err), true
	default:
		return end, false
	}
}

// running is a command that was started.
type running struct {
	pid   int
	ended <-chan error // the result of waiting for it
	out   *output
}

// start starts a command, in the control group with this directory if there is
// one.
func start(c Cmd, group *os.File) (*running, error) {
	cmd := exec.Command("bash", append([]string{"-c", c.Command}, c.Args...)...)
	cmd.Dir = c.Dir
	cmd.Env = append(c.Env[:len(c.Env):len(c.Env)], mark(c.Env)+"="+c.Generation, team.EnvDetached+"=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if group != nil {
		childattr.StartIn(cmd.SysProcAttr, group)
	}
	if c.Stdin != nil {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	out, err := newOutput(cmd, c.Stdout, c.Stderr)
	if err != nil {
		return nil, err
	}
	cmd.WaitDelay = drain // for its input, which what it leaves may keep open

	ended, err := childattr.Start(cmd, c.Enter)
	if err != nil {
		out.drop()
		return nil, err
	}
	out.start()
	return &running{cmd.Process.Pid, ended, out}, nil
}

// mark returns the variable for a command's generation. A command of a member
// keeps the member's generation, so that ending the member ends the command.
func mark(environ []string) string {
	for _, kv := range environ {
		if name, value, _ := strings.Cut(kv, "="); name == team.EnvGen && value != "" {
			return team.EnvCommand
		}
	}
	return team.EnvGen
}

// killWithin limits the time for ending what a command has started.
const killWithin = time.Minute

// endAll ends the process tree of a command that has not been waited for: its
// pid is not reused before.
func endAll(g proc.Group, pid int, generation string, grace time.Duration) error {
	var roots []backends.ProcID
	if id, err := proc.Identify(pid); err == nil {
		roots = append(roots, id)
	}
	return end(g, roots, generation, grace)
}

// End ends what is left of a generation whose runner has exited; the group may
// be nil.
func End(g proc.Group, generation string, grace time.Duration) error {
	return end(g, nil, generation, grace)
}

func end(g proc.Group, roots []backends.ProcID, generation string, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), killWithin)
	defer cancel()
	_, err := proc.KillTreeIn(ctx, g, roots, generation, grace)
	return err
}

func status(err error) Ended {
	var exit *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay): // what it left keeps its input open
		return Ended{}
	case !errors.As(err, &exit):
		return Ended{Code: -1, Err: err}
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Ended{Code: 128 + int(ws.Signal()), Signal: proc.SignalName(ws.Signal())}
	}
	return Ended{Code: exit.ExitCode()}
}
