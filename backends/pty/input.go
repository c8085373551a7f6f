package pty

import (
	"errors"
	"os"
	"sync"
)

const (
	// inputMax limits the input queued for a program that does not read.
	inputMax = 1 << 20
	// inputChunk is the size of one write: the maximum that a terminal accepts.
	inputChunk = 4096
)

// errFull means that the program does not read and the queue is full.
var errFull = errors.New("the program does not read its terminal, and its queue is full")

// input is the queue of input to the program. Only its own goroutine waits for
// the program.
type input struct {
	to   *os.File
	wake chan struct{} // capacity 1: there is input
	done chan struct{} // closed when the goroutine ends

	mu      sync.Mutex
	buf     []byte
	taken   int64 // total bytes removed from buf
	written int64 // total bytes written to the terminal
	moved   chan struct{}
	closed  bool
}

func newInput(to *os.File) *input {
	return &input{to: to, wake: make(chan struct{}, 1), done: make(chan struct{}), moved: make(chan struct{})}
}

// put queues p completely or not at all. It returns where p begins and ends, in
// bytes since the start.
func (q *input) put(p []byte) (from, to int64, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	from = q.taken + int64(len(q.buf))
	if q.closed {
		return 0, 0, os.ErrClosed
	}
	if len(q.buf)+len(p) > inputMax {
		return 0, 0, errFull
	}
	q.buf = append(q.buf, p...)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return from, from + int64(len(p)), nil
}

// passed reports whether everything before pos has been written; otherwise
// moved is closed at the next write.
func (q *input) passed(pos int64) (ok bool, moved <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.written >= pos, q.moved
}

// withdraw removes what put has queued, if none of it has been written and
// nothing was queued after it.
func (q *input) withdraw(from, to int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if from < q.taken || q.taken+int64(len(q.buf)) != to {
		return false
	}
	q.buf = q.buf[:from-q.taken]
	return true
}

// run writes until the terminal is closed.
func (q *input) run() {
	defer close(q.done)
	var chunk [inputChunk]byte
	for range q.wake {
		for {
			n := q.take(chunk[:])
			if n == 0 {
				break
			}
			if _, err := q.to.Write(chunk[:n]); err != nil {
				if errors.Is(err, os.ErrClosed) {
					return
				}
				// EIO: no process has the slave open. The input is lost.
			}
			q.mu.Lock()
			q.written += int64(n)
			close(q.moved)
			q.moved = make(chan struct{})
			q.mu.Unlock()
		}
	}
}

// take copies from the front of the queue; what it has taken can no longer be
// withdrawn.
func (q *input) take(into []byte) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := copy(into, q.buf)
	q.taken += int64(n)
	q.buf = q.buf[:copy(q.buf, q.buf[n:])]
	if len(q.buf) == 0 && cap(q.buf) > 64<<10 {
		q.buf = nil
	}
	return n
}

// close ends run once the terminal is closed too.
func (q *input) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.wake)
	}
}
