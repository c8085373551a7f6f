package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/team"
)

// spawn starts the agent in a process group of its own.
func (s *state) spawn() (pid int, err error) {
	l := s.launch
	env := environment(l, s.tty)
	files, tty := []uintptr{0, 1, 2}, 0
	if s.own != nil {
		env = ownEnvironment(env)
		slave := s.own.Slave().Fd()
		files, tty = []uintptr{slave, slave, slave}, int(slave)
	}
	path, err := Find(l.Argv[0], l.Dir, env)
	if err != nil {
		return 0, err
	}
	if l.Dir != "" {
		if fi, err := os.Stat(l.Dir); err != nil {
			return 0, fmt.Errorf("enter directory: %w", err)
		} else if !fi.IsDir() {
			return 0, fmt.Errorf("enter directory %s: %w", l.Dir, syscall.ENOTDIR)
		}
	}
	pid, err = s.fork(path, syscall.ProcAttr{
		Dir: l.Dir, Env: env, Files: files,
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		if errors.Is(err, syscall.ENOENT) {
			return 0, fmt.Errorf("%s: bad interpreter: %w", path, err)
		}
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	if s.tty || s.own != nil {
		// The child cannot do this itself without leaving SIGTTOU ignored or
		// blocked in the agent. If it accesses the terminal before this it is
		// stopped for a moment, and SIGCONT resumes it.
		_ = unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, pid)
		_ = unix.Kill(-pid, unix.SIGCONT)
	}
	return pid, nil
}

// Find resolves a program as the shim does: with the agent's PATH and
// directory, not with those of this process. The error names the program and
// wraps the system's error number.
func Find(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) && dir != "" {
			name = filepath.Join(dir, name)
		}
		return name, executable(name)
	}
	var path string
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	var denied error
	for _, d := range filepath.SplitList(path) {
		if !filepath.IsAbs(d) {
			continue // a relative entry would mean the agent's directory, which is never intended
		}
		p := filepath.Join(d, name)
		err := executable(p)
		if err == nil {
			return p, nil
		}
		if errors.Is(err, syscall.EACCES) {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", fmt.Errorf("%s: not found in PATH: %w", name, syscall.ENOENT)
}

func executable(path string) error {
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	if fi.IsDir() {
		return fmt.Errorf("%s: %w", path, syscall.EISDIR)
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// execFailure returns the exit of an agent that never ran. A failure that will
// recur (no such command, no permission) is ExecFailed, with the status that a
// shell would return; a lack of processes or memory is an unknown exit, which
// can be retried.
func execFailure(e backends.Exit, err error) backends.Exit {
	e.Known, e.Code = false, -1
	e.Reason = team.WhyStartFailed + err.Error()
	permanent := map[syscall.Errno]int{
		syscall.ENOENT: 127, syscall.ENOTDIR: 127, syscall.ELOOP: 127, syscall.ENAMETOOLONG: 127,
		syscall.EACCES: 126, syscall.EPERM: 126, syscall.EISDIR: 126, syscall.ENOEXEC: 126,
		syscall.E2BIG: 126, syscall.EINVAL: 126,
	}
	var no syscall.Errno
	if errors.As(err, &no) {
		if code, ok := permanent[no]; ok {
			e.Known, e.ExecFailed, e.Code = true, true, code
			e.Reason = team.WhyExecFailed + err.Error()
		}
	}
	return e
}
