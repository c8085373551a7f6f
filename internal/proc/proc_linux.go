package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
)

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

func stat(pid int) (info, error) {
	var buf [1024]byte // the line has at most some fifty numbers and sixteen letters
	b, err := readStat(pid, buf[:])
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return info{}, ErrGone
	}
	if err != nil {
		return info{}, fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	return parseStat(b)
}

func readStat(pid int, buf []byte) ([]byte, error) { return readProc(pid, "stat", buf) }

// parseStat parses a line of /proc/<pid>/stat. The command name is in
// parentheses and may itself contain blanks and parentheses: fields only begin
// after the last one.
func parseStat(b []byte) (info, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return info{}, fmt.Errorf("parse process state %q: no command name", b)
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 { // field 3 is f[0]; field 22 is f[19]
		return info{}, fmt.Errorf("parse process state %q: too short", b)
	}
	var in info
	var err error
	num := func(s string) int {
		n, e := strconv.Atoi(s)
		if e != nil && err == nil {
			err = fmt.Errorf("parse process state: %w", e)
		}
		return n
	}
	in.pid = num(strings.TrimSpace(string(b[:open])))
	in.ppid, in.pgrp, in.tpgid = num(f[1]), num(f[2]), num(f[5])
	// The first thread of a killed process may be a zombie while others are
	// still exiting: until the last one has exited its files are open and its
	// locks are held.
	in.dead = f[0] == "X" || f[0] == "x" || f[0] == "Z" && num(f[17]) <= 1
	start, e := strconv.ParseUint(f[19], 10, 64)
	if e != nil && err == nil {
		err = fmt.Errorf("parse process start time: %w", e)
	}
	in.start = start
	return in, err
}

// table returns the process table. It omits processes that exit while it is
// read.
func table() ([]info, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	var out []info
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		in, err := stat(pid)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, in)
	}
	return out, nil
}

// Signal sends a signal to exactly this process: the pidfd pins it before its
// identity is compared, so the signal cannot reach a later process with the
// same pid.
func Signal(id backends.ProcID, sig syscall.Signal) error {
	if id.PID <= 0 {
		return ErrGone
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return ErrGone
	case err != nil: // no pidfd on this system: a check just before is the best there is
		if !Alive(id) {
			return ErrGone
		}
		return gone(unix.Kill(id.PID, sig), id.PID)
	}
	defer func() { _ = unix.Close(fd) }()
	if !Alive(id) {
		return ErrGone
	}
	return gone(unix.PidfdSendSignal(fd, sig, nil, 0), id.PID)
}

func gone(err error, pid int) error {
	if errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	if err != nil {
		return fmt.Errorf("signal process %d: %w", pid, err)
	}
	return nil
}
