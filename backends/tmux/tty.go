package tmux

import "golang.org/x/sys/unix"

// canonical reports whether a terminal hands out whole lines. One that cannot be
// asked counts as not.
func canonical(tty string) bool {
	fd, err := unix.Open(tty, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	t, err := unix.IoctlGetTermios(fd, getTermios)
	return err == nil && t.Lflag&unix.ICANON != 0
}
