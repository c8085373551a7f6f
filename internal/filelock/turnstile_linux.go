package filelock

import (
	"context"
	"errors"
	"io"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// The places of the queue, as bytes of the file. They are locks of the open
// file description, independent of flock on the same file, and released with it
// when their holder dies.
const (
	turnstile = 0
	seat      = 1
)

func byteLock(fd, cmd int, kind int16, at int64) error {
	lk := unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: at, Len: 1}
	for {
		err := unix.FcntlFlock(uintptr(fd), cmd, &lk)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// tryPlace takes a place if it is free. A file system without byte locks has no
// queue: that loses fairness, not exclusion.
func tryPlace(fd int, at int64) bool {
	err := byteLock(fd, unix.F_OFD_SETLK, unix.F_WRLCK, at)
	return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES)
}

func awaitPlace(fd int, at int64) { _ = byteLock(fd, unix.F_OFD_SETLKW, unix.F_WRLCK, at) }

func leaveTurnstile(fd int) { _ = byteLock(fd, unix.F_OFD_SETLK, unix.F_UNLCK, turnstile) }

func leaveSeat(fd int) { _ = byteLock(fd, unix.F_OFD_SETLK, unix.F_UNLCK, seat) }

// waiter is a thread that is blocked in the queue.
type waiter struct {
	fd      int
	slot    *slot
	granted bool // guarded by slot.mu
	done    chan struct{}
}

// standInLine opens path and takes the seat and the turnstile. The caller has
// the slot's token.
func (s *slot) standInLine(ctx context.Context, path string) (int, error) {
	w := s.takeOver()
	if w == nil {
		fd, err := open(path)
		if err != nil {
			return -1, err
		}
		passed := false
		for n := 0; ; n++ {
			passed = passed || tryPlace(fd, turnstile)
			if passed && tryPlace(fd, seat) {
				return fd, nil
			}
			if n == yields {
				break
			}
			runtime.Gosched()
		}
		w = &waiter{fd: fd, slot: s, done: make(chan struct{})}
		go w.wait(passed)
	}
	select {
	case <-w.done:
		return w.fd, nil
	case <-ctx.Done():
		w.leave()
		return -1, ctx.Err()
	}
}

// wait blocks until the place is reached, and then keeps it or, if it is no
// longer wanted, releases it. It returns when all waiters before it have had
// the lock; nothing waits for it after it was abandoned.
func (w *waiter) wait(passed bool) {
	if !passed {
		awaitPlace(w.fd, turnstile)
	}
	awaitPlace(w.fd, seat)
	w.slot.mu.Lock()
	defer w.slot.mu.Unlock()
	w.granted = true
	if w.slot.left == w {
		w.slot.left = nil
		giveUp(w.fd)
		slots.put(w.slot)
		return
	}
	close(w.done)
}

// leave releases a place, or leaves it to the next caller of this process.
func (w *waiter) leave() {
	w.slot.mu.Lock()
	defer w.slot.mu.Unlock()
	if w.granted {
		giveUp(w.fd)
		return
	}
	w.slot.left = w
	slots.keep(w.slot)
}

// takeOver returns the place that another caller of this process has left, or
// nil.
func (s *slot) takeOver() *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.left
	if w != nil {
		s.left = nil
		slots.put(s) // the caller uses it too
	}
	return w
}

// nap calls nanosleep because the runtime's timers round up to a millisecond in
// an otherwise idle process, which would cost 50 times the usual hold.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&ts, nil) // waking up early only causes another attempt
}
