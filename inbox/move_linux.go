package inbox

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// canMove: renameat2 with RENAME_NOREPLACE is available if the file system
// supports it.
const canMove = true

// moveIn moves a directory to name in root. The error is fs.ErrExist if name
// exists, errors.ErrUnsupported if the file system cannot do it.
func moveIn(root *os.Root, name, from string) error {
	return inDir(root, func(fd int) error {
		return unix.Renameat2(unix.AT_FDCWD, from, fd, name, unix.RENAME_NOREPLACE)
	})
}

// moveOut is the reverse of moveIn.
func moveOut(root *os.Root, name, to string) error {
	return inDir(root, func(fd int) error {
		return unix.Renameat2(fd, name, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	})
}

func inDir(root *os.Root, move func(fd int) error) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	raw, err := dir.SyscallConn()
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	var moved error
	err = raw.Control(func(fd uintptr) { moved = move(int(fd)) })
	for _, e := range []syscall.Errno{unix.EINVAL, unix.ENOSYS, unix.EXDEV} {
		if errors.Is(moved, e) {
			moved = errors.ErrUnsupported
		}
	}
	return errors.Join(moved, err, dir.Close())
}
