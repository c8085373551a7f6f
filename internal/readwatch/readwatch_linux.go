package readwatch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	written = unix.IN_MODIFY | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE
	watched = unix.IN_OPEN | unix.IN_CLOSE_NOWRITE | written
)

// reader reads the events of one instance.
type reader struct {
	tell func(Event)
	raw  syscall.RawConn

	mu     sync.Mutex // held while events are read and reported
	buf    []byte
	opened map[string]bool // files that were opened since the last write to them
}

func watch(dir string, tell func(Event)) (*Watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	f := os.NewFile(uintptr(fd), "inotify") // waits in the poller, and Close ends a wait
	r := &reader{tell: tell, buf: make([]byte, 64<<10), opened: map[string]bool{}}
	if _, err = unix.InotifyAddWatch(fd, dir, watched|unix.IN_ONLYDIR); err == nil {
		r.raw, err = f.SyscallConn()
	}
	if err != nil {
		_ = f.Close()
		return nil, &os.PathError{Op: "watch", Path: dir, Err: err}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.raw.Read(func(fd uintptr) bool { return !r.drain(int(fd)) })
	}()
	return &Watcher{
		flush: func() { _ = r.raw.Control(func(fd uintptr) { r.drain(int(fd)) }) },
		end: func() {
			_ = f.Close()
			<-done
		},
	}, nil
}

// drain reports the events so far; false means that there will be no more.
func (r *reader) drain(fd int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		n, err := unix.Read(fd, r.buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return errors.Is(err, unix.EAGAIN)
		}
		r.report(r.buf[:n])
	}
}

func (r *reader) report(events []byte) {
	for len(events) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(events[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
		name := string(bytes.TrimRight(events[unix.SizeofInotifyEvent:end], "\x00"))
		events = events[end:]
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			clear(r.opened)
			r.tell(Event{})
		case name == "" || mask&unix.IN_ISDIR != 0: // the directory itself
		case mask&written != 0:
			delete(r.opened, name)
			r.tell(Event{Name: name, Written: true})
		case mask&unix.IN_OPEN != 0:
			r.opened[name] = true
		case r.opened[name]: // else it was opened before the last write
			r.tell(Event{Name: name})
		}
	}
}
