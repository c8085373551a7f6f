package pty

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const getTermios = unix.TCGETS

// samePeer reports whether the other side runs as this user (or as root). The
// directory already excludes other users, unless its mode was changed.
func samePeer(c *os.File) bool {
	rc, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	cerr := rc.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return cerr == nil && err == nil && (int(cred.Uid) == os.Getuid() || cred.Uid == 0)
}

// readable waits until fd or wake can be read. It does not use a blocking read,
// which could not be ended, and a terminal must not be set non-blocking for
// every process that has it open.
func readable(fd, wake int) (bool, error) {
	ps := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(ps, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return ps[1].Revents == 0, err
	}
}
