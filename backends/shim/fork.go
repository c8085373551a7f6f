package shim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"github.com/teamctl/teamctl/backends"
)

// fork starts the agent contained: in a control group of its own if possible,
// with its limits enforced by the group, otherwise by resource limits.
func (s *state) fork(path string, attr syscall.ProcAttr) (pid int, err error) {
	s.contain()
	pid, err = s.forkIn(path, attr)
	if err == nil || s.group == nil {
		return pid, err
	}
	// Entering the group and executing the file fail with the same error
	// numbers: a failure that also occurs without the group was due to the
	// file.
	s.release(err)
	if pid, err = s.forkIn(path, attr); err != nil {
		s.uncontained = ""
	}
	return pid, err
}

func (s *state) forkIn(path string, attr syscall.ProcAttr) (pid int, err error) {
	if s.group != nil {
		dir, err := s.group.FD()
		if err != nil {
			return 0, err
		}
		defer func() { _ = dir.Close() }()
		sys := *attr.Sys
		intoGroup(&sys, int(dir.Fd()))
		attr.Sys = &sys
	}
	if limits := s.byRlimit(); limits != nil {
		return s.forkLimited(limits, path, attr)
	}
	return syscall.ForkExec(path, s.launch.Argv, &attr)
}

// byRlimit records what enforces the limits that the group does not enforce,
// and returns those that a resource limit can enforce, as arguments of the step
// that sets them.
func (s *state) byRlimit() (args []string) {
	l := s.launch.Limits
	for _, k := range []struct {
		by   *backends.Keeper
		want int64
		can  bool
		flag string
	}{
		{&s.kept.Memory, l.MemoryBytes, canLimitMemory, flagMemory},
		{&s.kept.PIDs, l.PIDs, canLimitPIDs(), flagPIDs},
		{&s.kept.CPU, int64(l.CPUPercent), false, ""},
	} {
		switch {
		case k.want == 0 || *k.by == backends.KeptByCgroup:
		case k.can:
			*k.by = backends.KeptByRlimit
			args = append(args, k.flag+strconv.FormatInt(k.want, 10))
		default:
			*k.by = backends.KeptByNothing
		}
	}
	return args
}

// forkLimited starts the agent through this program (limitedExec), which limits
// itself and becomes the agent: a limit set from outside could come too late.
// Its report comes through a pipe, which closes when the agent is executed.
func (s *state) forkLimited(limits []string, path string, attr syscall.ProcAttr) (pid int, err error) {
	self, err := selfPath()
	if err != nil {
		return 0, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }()
	argv := append(append(append([]string{}, s.command...), stepExec), limits...)
	argv = append(append(argv, "--", path), s.launch.Argv...)
	attr.Files = append(append([]uintptr{}, attr.Files...), w.Fd())
	pid, err = syscall.ForkExec(self, argv, &attr)
	_ = w.Close()
	if err != nil {
		return 0, err
	}
	said, err := io.ReadAll(io.LimitReader(r, 64))
	switch {
	case err != nil:
	case string(said) == aboutToExec:
		return pid, nil
	case len(said) > len(aboutToExec):
		no, _ := strconv.Atoi(string(said[len(aboutToExec):]))
		err = syscall.Errno(no)
	default:
		err = errors.New("the process that sets its limits ended early")
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for {
		if _, werr := syscall.Wait4(pid, nil, 0, nil); !errors.Is(werr, syscall.EINTR) {
			break
		}
	}
	return 0, err
}

// The step writes this before it becomes the agent, followed by an error number
// if it could not.
const aboutToExec = "exec "

// stepExec is the shim's subcommand for limitedExec.
const (
	stepExec   = "exec"
	flagMemory = "--memory="
	flagPIDs   = "--pids="
)

// reportFD is the descriptor that forkLimited passes to the step.
const reportFD = 3

// limitedExec is "shim exec [--memory=BYTES] [--pids=N] -- PATH ARGV...": it sets
// resource limits on itself and becomes the agent.
func limitedExec(args []string) int {
	syscall.CloseOnExec(reportFD)
	report := os.NewFile(reportFD, "report")
	memory, pids, path, argv, err := parseExec(args)
	if err == nil {
		err = limitSelf(memory, pids)
	}
	if err != nil {
		return fail(err, 2)
	}
	if _, err := report.WriteString(aboutToExec); err != nil {
		return fail(err, 2)
	}
	err = syscall.Exec(path, argv, os.Environ())
	var no syscall.Errno
	errors.As(err, &no)
	_, _ = report.WriteString(strconv.Itoa(int(no)))
	return 126
}

func parseExec(args []string) (memory, pids int64, path string, argv []string, err error) {
	for i, a := range args {
		var n *int64
		switch {
		case a == "--" && len(args) > i+2:
			return memory, pids, args[i+1], args[i+2:], nil
		case len(a) > len(flagMemory) && a[:len(flagMemory)] == flagMemory:
			n, a = &memory, a[len(flagMemory):]
		case len(a) > len(flagPIDs) && a[:len(flagPIDs)] == flagPIDs:
			n, a = &pids, a[len(flagPIDs):]
		default:
			return 0, 0, "", nil, fmt.Errorf("unknown argument %q", a)
		}
		if *n, err = strconv.ParseInt(a, 10, 64); err != nil || *n <= 0 {
			return 0, 0, "", nil, fmt.Errorf("argument %q is not a limit", a)
		}
	}
	return 0, 0, "", nil, errors.New("usage: teamctl shim exec [--memory=BYTES] [--pids=N] -- PATH ARGV")
}
