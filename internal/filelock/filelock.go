// Package filelock is a mutual exclusion lock for goroutines and processes of
// one machine.
//
// It is based on flock(2) on a file that is never unlinked: the kernel releases
// it on any death of the holder, so there is no stale lock and nothing to
// steal. Two queues before it make it fair:
//
//   - a semaphore per path, so that only one goroutine of a process at a time
//     competes with other processes, and its goroutines are served in order;
//   - where the kernel has open-file-description locks (Linux), a queue on two
//     bytes of the same file. The holder has the seat (byte 1); the next waiter has
//     the turnstile (byte 0) and waits for the seat; all others wait for the
//     turnstile. A process that unlocks and locks again at once therefore queues
//     behind them. Without this the last holder wins nearly every race and the
//     others starve.
//
// The semaphore is found by the cleaned absolute path. Two spellings of one
// path (a symlinked directory) get two semaphores and still exclude each other:
// flock belongs to the open file, and every Lock opens the file again.
//
// Waiting in the queue blocks in the kernel, which wakes the next waiter at
// once and in order; polling cost more than a claim does. A blocked wait cannot
// be cancelled: a caller that gives up leaves it behind, and the next Lock of
// the path in the process takes it over. It can do no harm, because it ends
// with a place in the queue and never with the lock: flock itself is only ever
// requested without blocking.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Held is a held lock.
type Held struct {
	f        *os.File
	slot     *slot
	released atomic.Bool
}

// errReplaced means that the file was unlinked or replaced between open and
// lock; the lock on the old inode excludes no one.
var errReplaced = errors.New("lock file was replaced")

// Lock waits until path is not locked and locks it. It creates a missing file
// with mode 0600, but not its directory. It refuses a symlink and anything else
// that is not a regular file. The error wraps ctx.Err() if ctx ends first.
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

// TryLock locks path if it is free; ok is false if it is not. It does not
// queue, so it may overtake callers that wait in Lock.
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

// IsHeld reports whether any process or goroutine holds the lock on path. A
// missing file is not held. Probes disturb neither each other nor TryLock.
func IsHeld(path string) (bool, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("probe the lock %s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }() // also releases the probe's own lock
	for {
		err = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case err == nil:
		_ = unix.Flock(fd, unix.LOCK_UN) // before close: a child that is being forked may have a copy
		return false, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return true, nil
	default:
		return false, fmt.Errorf("probe the lock %s: %w", path, err)
	}
}

// Unlock releases the lock. A second call does nothing.
func (l *Held) Unlock() error {
	if l.released.Swap(true) {
		return nil
	}
	// Unlock explicitly: a child between fork and exec has a copy of the
	// descriptor, and the lock is held as long as any copy is open.
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

// File returns the locked file, open for reading and writing until Unlock. Its
// content has no meaning to this package; a holder may write its identity into
// it.
func (l *Held) File() *os.File { return l.f }

// lockInLine waits for the seat and then for the lock, until the locked file is
// the one that path names.
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

// giveUp releases everything held on fd and closes it.
func giveUp(fd int) {
	_ = unix.Flock(fd, unix.LOCK_UN) // a child that is being forked may have a copy
	leaveSeat(fd)
	leaveTurnstile(fd)
	_ = unix.Close(fd)
}

// tryFile requests the lock once, and again each time the file was replaced
// meanwhile.
func tryFile(path string) (*os.File, bool, error) {
	for {
		fd, err := open(path)
		if err != nil {
			return nil, false, err
		}
		ok, err := TryExclusive(fd)
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

// TryExclusive locks an open file if no other has it locked exclusively. A probe has
// it locked too, shared and for an instant: that is waited for.
func TryExclusive(fd int) (bool, error) {
	for {
		if ok, err := tryFlock(fd, unix.LOCK_EX); ok || err != nil {
			return ok, err
		}
		if ok, err := tryFlock(fd, unix.LOCK_SH); !ok || err != nil {
			return false, err
		}
		if err := unix.Flock(fd, unix.LOCK_UN); err != nil {
			return false, err
		}
		runtime.Gosched()
	}
}

func tryFlock(fd, how int) (bool, error) {
	for {
		err := unix.Flock(fd, how|unix.LOCK_NB)
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

// waitFlock requests the lock until it is granted, fails, or ctx ends. The
// holder of the seat competes only with callers of TryLock.
func waitFlock(ctx context.Context, fd int) error {
	for n := 0; ; n++ {
		ok, err := tryFlock(fd, unix.LOCK_EX)
		if err != nil || ok {
			return err
		}
		if err := backOff(ctx, n); err != nil {
			return err
		}
	}
}
