package openpty

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

func open() (master, slave *os.File, err error) {
	m, err := openFile("/dev/ptmx", unix.O_NONBLOCK)
	if err != nil {
		return nil, nil, err
	}
	// From here on m is closed by its File.
	master = os.NewFile(uintptr(m), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, errors.Join(os.NewSyscallError("unlock", err), master.Close())
	}
	n, err := unix.IoctlGetUint32(m, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, errors.Join(os.NewSyscallError("ask for the number", err), master.Close())
	}
	name := "/dev/pts/" + strconv.FormatUint(uint64(n), 10)
	s, err := openFile(name, 0)
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, os.NewFile(uintptr(s), name), nil
}

func openFile(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|flags, 0)
		if err == nil {
			return fd, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return -1, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}
