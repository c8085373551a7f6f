// Package filelock is a mutual exclusion lock for goroutines and processes of
// one machine.
//
// The truth is flock(2) on a file that is never unlinked: the kernel frees it
// on any death of the holder, so there is no stale lock and nothing to steal.
// In front of it stand two queues that make it fair:
//
//   - a semaphore per path, so that of one process only one goroutine at a time
//     competes with other processes, and its goroutines are served in order;
//   - where the kernel has open-file-description locks (Linux), a line on two
//     bytes of the same file. The holder has the seat (byte 1), who is next has the
//     turnstile (byte 0) and waits for the seat, all others wait for the turnstile.
//     So a process that unlocks and locks again at once has to stand behind them.
//     Without it the last holder wins nearly every race and the others starve.
//
// The semaphore is found by the cleaned absolute path. Two spellings of one
// path (a symlinked directory) get two semaphores and still exclude each other:
// flock belongs to the open file, and every Lock opens the file anew.
//
// Waiting in line blocks in the kernel, which wakes the next at once and in order;
// asking again after a pause cost more than a claim does. A blocked wait cannot be
// cancelled: who gives up leaves it behind, where the process's next Lock of the path
// takes it over. It can do no harm there, for it ends with a place in the line and
// never with the lock: flock itself is only ever asked for, without blocking.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Held is a lock that is held.
type Held struct {
	f        *os.File
	slot     *slot
	released atomic.Bool
}

// errReplaced means that the file was unlinked or replaced between open and
// lock; the lock on the old inode excludes nobody.
var errReplaced = errors.New("lock file was replaced")

// Lock waits until path is locked by nobody else and locks it. The file is
// created with mode 0600 where it is missing; its directory is not. A symlink
// or anything else but a regular file is refused. The error wraps ctx.Err()
// when ctx ends first.
func Lock(ctx context.Context, path string) (*Held, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	key, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	s := slots.get(key)
	if err := s.acquire(ctx); err != nil {
		slots.put(s)
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	f, err := lockInLine(ctx, s, key)
	if err != nil {
		s.release()
		slots.put(s)
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Held{f: f, slot: s}, nil
}

// TryLock locks path if nobody holds it; ok is false when somebody does. It
// does not stand in line, so it may pass those who wait in Lock.
func TryLock(path string) (l *Held, ok bool, err error) {
	key, err := filepath.Abs(path)
	if err != nil {
		return nil, false, fmt.Errorf("lock %s: %w", path, err)
	}
	s := slots.get(key)
	if !s.tryAcquire() {
		slots.put(s)
		return nil, false, nil
	}
	f, ok, err := tryFile(key)
	if err != nil || !ok {
		s.release()
		slots.put(s)
		if err != nil {
			err = fmt.Errorf("lock %s: %w", path, err)
		}
		return nil, false, err
	}
	return &Held{f: f, slot: s}, true, nil
}

// IsHeld reports whether some process or goroutine holds the lock on path. A
// missing file is not held. Probes do not disturb each other, but a TryLock in
// the very instant of a probe finds the file busy: take a lock that others
// probe with Lock and a deadline.
func IsHeld(path string) (bool, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("probe the lock %s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }() // frees the probe's own lock too
	for {
		err = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case err == nil:
		_ = unix.Flock(fd, unix.LOCK_UN) // before close: a child being forked may hold a copy
		return false, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return true, nil
	default:
		return false, fmt.Errorf("probe the lock %s: %w", path, err)
	}
}

// Unlock frees the lock. A second call does nothing.
func (l *Held) Unlock() error {
	if l.released.Swap(true) {
		return nil
	}
	// LOCK_UN, not close alone: a child between fork and exec has a copy of the
	// descriptor, and the lock lives as long as any copy.
	fd := int(l.f.Fd())
	err := unix.Flock(fd, unix.LOCK_UN)
	leaveSeat(fd)
	err = errors.Join(err, l.f.Close())
	l.slot.release()
	slots.put(l.slot)
	if err != nil {
		return fmt.Errorf("unlock %s: %w", l.f.Name(), err)
	}
	return nil
}

// File is the locked file, open for reading and writing until Unlock. Its
// content has no meaning here; a holder may write who it is into it.
func (l *Held) File() *os.File { return l.f }

// lockInLine waits for the seat and then for the lock, until the locked file is the
// one that path names.
func lockInLine(ctx context.Context, s *slot, path string) (*os.File, error) {
	for {
		fd, err := s.standInLine(ctx, path)
		if err != nil {
			return nil, err
		}
		err = waitFlock(ctx, fd)
		leaveTurnstile(fd)
		if err == nil {
			err = sameFile(fd, path)
		}
		if err == nil {
			return os.NewFile(uintptr(fd), path), nil
		}
		giveUp(fd)
		if !errors.Is(err, errReplaced) {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// giveUp frees whatever is held on fd and closes it.
func giveUp(fd int) {
	_ = unix.Flock(fd, unix.LOCK_UN) // a child being forked may hold a copy
	leaveSeat(fd)
	leaveTurnstile(fd)
	_ = unix.Close(fd)
}

// tryFile asks for the lock once, and once more for each time that the file was
// replaced meanwhile.
func tryFile(path string) (*os.File, bool, error) {
	for {
		fd, err := open(path)
		if err != nil {
			return nil, false, err
		}
		ok, err := tryFlock(fd)
		if ok && err == nil {
			err = sameFile(fd, path)
		}
		if err == nil && ok {
			return os.NewFile(uintptr(fd), path), true, nil
		}
		_ = unix.Close(fd)
		if !errors.Is(err, errReplaced) {
			return nil, false, err
		}
	}
}

func open(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.ELOOP) {
			return -1, fmt.Errorf("refuse a symlink: %w", err)
		}
		if err != nil {
			return -1, err
		}
		var st unix.Stat_t
		if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
			err = errors.New("not a regular file")
		}
		if err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
		return fd, nil
	}
}

func sameFile(fd int, path string) error {
	var have, want unix.Stat_t
	if err := unix.Fstat(fd, &have); err != nil {
		return err
	}
	err := unix.Lstat(path, &want)
	if errors.Is(err, unix.ENOENT) || err == nil && (have.Dev != want.Dev || have.Ino != want.Ino) {
		return errReplaced
	}
	return err
}

func tryFlock(fd int) (bool, error) {
	for {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		default:
			return false, err
		}
	}
}

// waitFlock asks until it is granted, fails, or ctx ends. Whoever has the seat is
// alone here but for those who only try.
func waitFlock(ctx context.Context, fd int) error {
	for n := 0; ; n++ {
		ok, err := tryFlock(fd)
		if err != nil || ok {
			return err
		}
		if err := pause(ctx, n); err != nil {
			return err
		}
	}
}
