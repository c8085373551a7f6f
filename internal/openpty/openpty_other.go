//go:build !linux

package openpty

import (
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

func open() (master, slave *os.File, err error) {
	m, slave, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	// The library leaves the master blocking. The flag belongs to the open file and is
	// shared with the duplicate; it must be set before the runtime creates the File.
	fd, err := unix.FcntlInt(m.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	_ = m.Close()
	if err == nil {
		if err = unix.SetNonblock(fd, true); err != nil {
			_ = unix.Close(fd)
		}
	}
	if err == nil {
		if err = unix.SetNonblock(int(slave.Fd()), false); err != nil {
			_ = unix.Close(fd)
		}
	}
	if err != nil {
		_ = slave.Close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), "master"), slave, nil
}
