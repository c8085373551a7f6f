package filelock

import (
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"
)

// The turnstile is an open-file-description lock on the first byte. It is
// independent of flock on the same file, and freed with it when the holder dies.
func byteLock(fd int, kind int16) error {
	lk := unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: 0, Len: 1}
	for {
		err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &lk)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func tryTurnstile(_ context.Context, fd int) (bool, error) {
	err := byteLock(fd, unix.F_WRLCK)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		return false, nil
	default:
		// A file system without byte locks: fairness is lost, exclusion is not.
		return true, nil
	}
}

func leaveTurnstile(fd int) { _ = byteLock(fd, unix.F_UNLCK) }

// nap is nanosleep because the runtime's timers round up to a millisecond in a
// process that is otherwise idle, which would cost 50 times the usual hold.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&ts, nil) // an early wake-up only asks once more
}
