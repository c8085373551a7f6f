package tmux

import "golang.org/x/sys/unix"

// peer returns the pid of the process at the other end of a connected unix
// socket.
func peer(fd int) (int, error) { return unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID) }
