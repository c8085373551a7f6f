package proc

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
)

// watch waits on a pidfd in the runtime's poller. The descriptor is opened
// before the identity is compared: from then on the pid cannot be reused for
// another process.
func watch(id backends.ProcID) (wait func() bool, stop func(), err error) {
	fd, err := unix.PidfdOpen(id.PID, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, nil, nil
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM), errors.Is(err, unix.EINVAL):
		return poll(id) // before Linux 5.3, or forbidden by seccomp
	case err != nil:
		return nil, nil, fmt.Errorf("watch process %d: %w", id.PID, err)
	}
	if !Alive(id) {
		_ = unix.Close(fd)
		return nil, nil, nil
	}
	// PIDFD_NONBLOCK is newer (5.10) than pidfd_open.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, nil, fmt.Errorf("watch process %d: %w", id.PID, err)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	rc, err := f.SyscallConn()
	if err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("watch process %d: %w", id.PID, err)
	}
	wait = func() bool {
		defer func() { _ = f.Close() }()
		dead := false
		err := rc.Read(func(fd uintptr) bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			dead = err == nil && n == 1
			return dead
		})
		return err == nil && dead
	}
	return wait, func() { _ = f.Close() }, nil
}
