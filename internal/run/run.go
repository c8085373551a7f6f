package run

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
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
	Command    string // for bash -c
	Dir        string
	Env        []string // the whole environment except for the generation
	Generation string   // identifies its processes
	Group      Group    // nil: none
	Stdin      []byte
	Stdout     io.Writer
	Stderr     io.Writer // may be the same as Stdout
	Limit      time.Duration
	Grace      time.Duration // between SIGTERM and SIGKILL
}

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

// OK reports whether it ended by itself, with status 0.
func (e Ended) OK() bool { return e.Err == nil && !e.Late && !e.Cut && e.Signal == "" && e.Code == 0 }

// Run runs a command and returns when none of its processes is left. An error
// means that some process is left.
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
	cmd, ended, err := start(c, dir)
	if err != nil && dir != nil { // the group may be the cause
		cmd, ended, err = start(c, nil)
	}
	if err != nil {
		return Ended{Code: -1, Err: err}, nil
	}
	var late <-chan time.Time
	if c.Limit > 0 {
		timer := time.NewTimer(c.Limit)
		defer timer.Stop()
		late = timer.C
	}
	reap := func() error { return <-ended }
	// Wait only for its own exit: what it leaves in the background may keep its
	// output open, and is ended below.
	select {
	case err := <-ended:
		return status(err), endAll(group, cmd.Process.Pid, c.Generation, 0)
	case <-late:
		err := endAll(group, cmd.Process.Pid, c.Generation, c.Grace)
		_ = reap() // ended above
		return Ended{Code: lateCode, Late: true}, err
	case <-ctx.Done():
		err := endAll(group, cmd.Process.Pid, c.Generation, c.Grace)
		_ = reap() // ended above
		return Ended{Code: -1, Cut: true}, err
	}
}

// start starts a command, in the control group with this directory if there is
// one. The result of waiting for it is sent on the channel.
func start(c Cmd, group *os.File) (*exec.Cmd, <-chan error, error) {
	cmd := exec.Command("bash", "-c", c.Command)
	cmd.Dir = c.Dir
	cmd.Env = append(c.Env[:len(c.Env):len(c.Env)], team.EnvGen+"="+c.Generation, team.EnvDetached+"=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	childattr.DieWithUs(cmd.SysProcAttr)
	if group != nil {
		childattr.StartIn(cmd.SysProcAttr, group)
	}
	if c.Stdin != nil {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
	cmd.WaitDelay = c.Grace

	ended := make(chan error, 1)
	started := make(chan error, 1)
	go func() {
		// The signal of DieWithUs is sent when this thread ends, not the
		// process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	return cmd, ended, <-started
}

// killWithin limits the time for ending what a command has started.
const killWithin = time.Minute

// endAll ends the process tree of a command. The root may have exited already,
// and its pid is not reused before it has been waited for.
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
	case err == nil || errors.Is(err, exec.ErrWaitDelay): // what it left keeps its output open
		return Ended{}
	case !errors.As(err, &exit):
		return Ended{Code: -1, Err: err}
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Ended{Code: 128 + int(ws.Signal()), Signal: proc.SignalName(ws.Signal())}
	}
	return Ended{Code: exit.ExitCode()}
}
