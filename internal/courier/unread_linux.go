package courier

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// unread returns the number of unread input bytes in the terminal of a process. It is unknown if
// the process has no terminal, and in canonical mode, where an unfinished line is not counted.
func unread(pid int) (n int, known bool) {
	if pid <= 0 {
		return 0, false
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/fd/0", pid), unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	defer func() { _ = unix.Close(fd) }() // nothing was read
	mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil || mode.Lflag&unix.ICANON != 0 {
		return 0, false
	}
	n, err = unix.IoctlGetInt(fd, unix.TIOCINQ)
	return n, err == nil
}
