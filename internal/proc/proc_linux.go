package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/procfs"
)

// boot is the id of this boot once it has been read: it stays the same while a
// process lives, and every identity of a process contains it.
var boot atomic.Pointer[string]

func bootID() (string, error) {
	if id := boot.Load(); id != nil {
		return *id, nil
	}
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	id := strings.TrimSpace(string(b))
	boot.Store(&id)
	return id, nil
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
	return infoOf(b)
}

func readStat(pid int, buf []byte) ([]byte, error) { return readProc(pid, "stat", buf) }

func infoOf(b []byte) (info, error) {
	s, err := procfs.ParseStat(b)
	return info{
		pid: s.PID, ppid: s.Parent, pgrp: s.Group, tpgid: s.Front, start: s.Start,
		// The first thread of a killed process may be a zombie while others are still
		// exiting: until the last one has exited its files are open and its locks are held.
		dead: s.State == 'X' || s.State == 'x' || s.State == 'Z' && s.Threads <= 1,
		bare: !s.Memory,
	}, err
}

// table returns the process table. It omits processes that exit while it is
// read.
func table() ([]info, error) {
	pids, err := procfs.PIDs()
	if err != nil {
		return nil, err
	}
	var out []info
	for _, pid := range pids {
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
