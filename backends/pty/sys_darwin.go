package pty

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const getTermios = unix.TIOCGETA

// samePeer reports whether the other side runs as this user (or as root).
func samePeer(c *os.File) bool {
	rc, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Xucred
	cerr := rc.Control(func(fd uintptr) { cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED) })
	return cerr == nil && err == nil && (int(cred.Uid) == os.Getuid() || cred.Uid == 0)
}

// readable waits until fd or wake can be read. It does not use poll, which does
// not support terminals on macOS.
func readable(fd, wake int) (bool, error) {
	for {
		var set unix.FdSet
		set.Set(fd)
		set.Set(wake)
		_, err := unix.Select(max(fd, wake)+1, &set, nil, nil, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return !set.IsSet(wake), err
	}
}
