package proc

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
)

// szomb is SZOMB of <sys/proc.h>.
const szomb = 5

func bootID() (string, error) {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return id, nil
}

func stat(pid int) (info, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil { // an empty answer is EIO
		if errors.Is(err, unix.EIO) || errors.Is(err, unix.ESRCH) {
			return info{}, ErrGone
		}
		return info{}, fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	if int(k.Proc.P_pid) != pid {
		return info{}, ErrGone
	}
	return fromKinfo(k), nil
}

func fromKinfo(k *unix.KinfoProc) info {
	t := k.Proc.P_starttime
	return info{
		pid: int(k.Proc.P_pid), ppid: int(k.Eproc.Ppid),
		pgrp: int(k.Eproc.Pgid), tpgid: int(k.Eproc.Tpgid),
		start: uint64(t.Sec)*1_000_000 + uint64(t.Usec),
		dead:  k.Proc.P_stat == szomb,
	}
}

// table returns the process table. It omits processes that exit while it is
// read.
func table() ([]info, error) {
	ks, err := unix.SysctlKinfoProcSlice("kern.proc.uid", os.Getuid())
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	out := make([]info, 0, len(ks))
	for i := range ks {
		out = append(out, fromKinfo(&ks[i]))
	}
	return out, nil
}

// Signal sends a signal to this process; macOS cannot pin a pid, so the
// identity is compared just before.
func Signal(id backends.ProcID, sig syscall.Signal) error {
	if !Alive(id) {
		return ErrGone
	}
	err := unix.Kill(id.PID, sig)
	if errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	if err != nil {
		return fmt.Errorf("signal process %s: %w", strconv.Itoa(id.PID), err)
	}
	return nil
}
