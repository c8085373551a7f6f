package worktree

import (
	"os"
	"syscall"
)

// ficlone is FICLONE of linux/fs.h.
const ficlone = 0x40049409

// reflink makes dst share the blocks of src if the file system supports it.
func reflink(dst, src *os.File) error {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, dst.Fd(), ficlone, src.Fd())
	if errno != 0 {
		return errno
	}
	return nil
}
