// Package filelock is a mutual exclusion lock for goroutines and processes of
// one machine.
//
// The truth is flock(2) on a file that is never unlinked: the kernel frees it
// on any death of the holder, so there is no stale lock and nothing to steal.
// In front of it stand two queues that make it fair:
//
//   - a semaphore per path, so that of one process only one goroutine at a time
//     competes with other processes, and its goroutines are served in order;
//   - where the kernel has open-file-description locks (Linux), a turnstile on
//     the first byte of the same file. Who waits for the lock holds the
//     turnstile, so a process that unlocks and locks again at once has to stand
//     in line behind it. Without it the last holder wins nearly every race and
//     the others starve.
//
// The semaphore is found by the cleaned absolute path. Two spellings of one
// path (a symlinked directory) get two semaphores and still exclude each other:
// flock belongs to the open file, and every Lock opens the file anew.
//
// A waiter asks again with jittered pauses and never blocks in flock itself: a
// blocked flock cannot be cancelled, and a helper goroutine for it would live
// as long as the other holder does.
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

// attempt is one way of asking for the kernel's lock on an open file.
type attempt func(ctx context.Context, fd int) (bool, error)

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
	f, _, err := lockFile(ctx, key, queueFlock)
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
	f, ok, err := lockFile(context.Background(), key, tryFlock)
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
	err := unix.Flock(int(l.f.Fd()), unix.LOCK_UN)
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

// lockFile opens path and asks for its lock until the locked file is the one
// that path names.
func lockFile(ctx context.Context, path string, ask attempt) (*os.File, bool, error) {
	for {
		f, ok, err := lockOnce(ctx, path, ask)
		if !errors.Is(err, errReplaced) {
			return f, ok, err
		}
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
	}
}

func lockOnce(ctx context.Context, path string, ask attempt) (*os.File, bool, error) {
	fd, err := open(path)
	if err != nil {
		return nil, false, err
	}
	ok, err := ask(ctx, fd)
	if ok && err == nil {
		err = sameFile(fd, path)
	}
	if err != nil || !ok {
		_ = unix.Close(fd)
		return nil, false, err
	}
	return os.NewFile(uintptr(fd), path), true, nil
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

func tryFlock(_ context.Context, fd int) (bool, error) {
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

// queueFlock passes the turnstile, then waits for the lock itself.
func queueFlock(ctx context.Context, fd int) (bool, error) {
	if err := wait(ctx, fd, tryTurnstile); err != nil {
		return false, err
	}
	err := wait(ctx, fd, tryFlock)
	leaveTurnstile(fd)
	return err == nil, err
}

// wait asks until it is granted, fails, or ctx ends.
func wait(ctx context.Context, fd int, ask attempt) error {
	for n := 0; ; n++ {
		ok, err := ask(ctx, fd)
		if err != nil || ok {
			return err
		}
		if err := pause(ctx, n); err != nil {
			return err
		}
	}
}
