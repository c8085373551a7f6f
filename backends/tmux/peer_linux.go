package tmux

import "golang.org/x/sys/unix"

// peer returns the pid of the process at the other end of a connected unix
// socket.
func peer(fd int) (int, error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(c.Pid), nil
}
