package pty

import (
	"errors"
	"sync"
	"time"

	"github.com/teamctl/teamctl/backends/bundle"
)

const (
	// logQueueMax limits the output queued for the disk.
	logQueueMax = 128 << 10
	// During a flood the log is written in pieces of logPiece or every
	// logEvery, whichever comes first; single output is written at once.
	logPiece = 48 << 10
	logEvery = 2 * time.Millisecond
	// diskPatience is how long the agent is blocked if the disk does not accept
	// its output. After that output is dropped, and counted, until the disk
	// accepts it again.
	diskPatience = time.Second
)

var errSlowDisk = errors.New("the disk did not accept it in time")

// logQueue writes the log in a goroutine of its own, because a disk that hangs
// must not block the agent.
type logQueue struct {
	file *bundle.LogFile
	wake chan struct{} // capacity 1: there is output, or it is closed
	full chan struct{} // capacity 1: there is enough for a piece
	room chan struct{} // capacity 1: output was taken
	done chan struct{}

	mu     sync.Mutex
	buf    []byte
	stuck  bool
	lost   int64
	closed bool
}

func newLogQueue(f *bundle.LogFile) *logQueue {
	return &logQueue{file: f, wake: make(chan struct{}, 1), full: make(chan struct{}, 1), room: make(chan struct{}, 1), done: make(chan struct{})}
}

// put queues p. It waits for the disk for a while, as a terminal waits for its
// reader.
func (q *logQueue) put(p []byte) {
	if q.try(p) {
		return
	}
	t := time.NewTimer(diskPatience)
	defer t.Stop()
	for {
		select {
		case <-q.room:
			if q.try(p) {
				return
			}
		case <-t.C:
			if q.try(p) { // there may be room, too, if this process did not run
				return
			}
			q.mu.Lock()
			q.stuck = true
			q.lost += int64(len(p))
			q.mu.Unlock()
			return
		}
	}
}

func (q *logQueue) try(p []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.stuck || q.closed:
		q.lost += int64(len(p))
		return true
	case len(q.buf) > 0 && len(q.buf)+len(p) > logQueueMax:
		return false
	}
	q.buf = append(q.buf, p...)
	wakeUp(q.wake)
	if len(q.buf) >= logPiece {
		wakeUp(q.full)
	}
	return true
}

func (q *logQueue) run() {
	defer close(q.done)
	var spare []byte
	var last time.Time
	t := time.NewTimer(logEvery)
	defer t.Stop()
	for range q.wake {
		if wait := logEvery - time.Since(last); wait > 0 {
			t.Reset(wait)
			select {
			case <-q.full:
			case <-t.C:
			}
		}
		q.mu.Lock()
		p, lost, closed := q.buf, q.lost, q.closed
		q.buf, q.lost, q.stuck = spare[:0], 0, false
		q.mu.Unlock()
		_, _ = q.file.Write(p)
		if lost > 0 {
			q.file.Lose(lost, errSlowDisk)
		}
		spare, last = p, time.Now()
		wakeUp(q.room)
		if closed {
			return
		}
	}
}

// close writes what is queued and closes the log; it returns false if the disk
// did not accept it in time, and then leaves the goroutine running until the
// process exits.
func (q *logQueue) close(within time.Duration) bool {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	wakeUp(q.wake)
	wakeUp(q.full)
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-q.done:
		return q.file.Close() == nil
	case <-t.C:
		return false
	}
}

// wakeUp leaves a token in a channel of capacity one.
func wakeUp(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
