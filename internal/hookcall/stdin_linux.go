package hookcall

import (
	"os"

	"golang.org/x/sys/unix"
)

// spare returns a file without a name, in memory where the kernel allows it.
func spare() (*os.File, error) {
	fd, err := unix.MemfdCreate("hook", unix.MFD_CLOEXEC)
	if err != nil {
		return unnamed()
	}
	return os.NewFile(uintptr(fd), "hook"), nil
}

// asStdin makes f the standard input.
func asStdin(f *os.File) error { return unix.Dup3(int(f.Fd()), 0, 0) }
