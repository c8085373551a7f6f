package bundle

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
)

// Lock is a held flock. The kernel releases it when its holder dies.
type Lock struct{ f *os.File }

// errHeld means that another open file holds the lock.
var errHeld = errors.New("lock is held")

func lock(path string, how int) (*Lock, error) {
	return lockBy(path, func(fd int) error {
		for {
			err := unix.Flock(fd, how)
			if errors.Is(err, unix.EWOULDBLOCK) {
				return errHeld
			}
			if !errors.Is(err, unix.EINTR) {
				return err
			}
		}
	})
}

func lockBy(path string, take func(fd int) error) (*Lock, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := take(fd); err != nil {
		_ = unix.Close(fd)
		if errors.Is(err, errHeld) {
			return nil, errHeld
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Lock{f: os.NewFile(uintptr(fd), path)}, nil
}

// Unlock releases the lock. A child that is being forked may have a copy of the
// descriptor for a moment; an explicit unlock releases the lock regardless.
func (l *Lock) Unlock() {
	_ = unix.Flock(int(l.f.Fd()), unix.LOCK_UN)
	_ = l.f.Close()
}

// LockStart takes start.lock for a backend. It returns CodeConflict during
// another start, or while a shim is starting.
func LockStart(b team.Bundle) (*Lock, error) {
	l, err := lock(b.StartLock(), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, errHeld) {
		return nil, team.Errorf(team.CodeConflict, "another start of this member is in progress").WithReason(team.ReasonStartInProgress)
	}
	return l, err
}

// AwaitStart waits for start.lock and takes it, shared: what a shim does first.
func AwaitStart(b team.Bundle) (*Lock, error) { return lock(b.StartLock(), unix.LOCK_SH) }

// LockRun takes run.lock, for as long as a generation is alive. It returns
// CodeConflict if a generation is alive.
func LockRun(b team.Bundle) (*Lock, error) {
	l, err := lockBy(b.RunLock(), func(fd int) error {
		if ok, err := filelock.TryExclusive(fd); ok || err != nil {
			return err
		}
		return errHeld
	})
	if errors.Is(err, errHeld) {
		return nil, team.Errorf(team.CodeConflict, "a generation of this member is running").WithReason(team.ReasonAlreadyRunning)
	}
	return l, err
}

// Running reports whether a shim is alive, by its lock.
func Running(b team.Bundle) (bool, error) {
	if _, err := os.Lstat(b.RunLock()); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	l, err := lock(b.RunLock(), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, errHeld) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	l.Unlock()
	return false, nil
}
