package control

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// quiet is a connection whose reads and writes bypass the runtime's scheduler: the socket is
// non-blocking, and a caller that must wait parks. The first system call that may block after an
// idle period would wake the runtime's monitor, which then polls every 20 us until the process is
// idle again: a third of what an operation costs its client.
type quiet struct {
	net.Conn
	raw syscall.RawConn
}

// quietly makes a connection quiet if possible.
func quietly(c net.Conn) net.Conn {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return c
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return c
	}
	return &quiet{c, raw}
}

func (q *quiet) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := q.do(q.raw.Read, unix.SYS_READ, b)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

func (q *quiet) Write(b []byte) (int, error) {
	for done := 0; ; {
		if done == len(b) {
			return done, nil
		}
		n, err := q.do(q.raw.Write, unix.SYS_WRITE, b[done:])
		done += n
		if err != nil {
			return done, err
		}
	}
}

// do is one system call on b, which is not empty, once the socket is ready for it.
func (q *quiet) do(when func(func(uintptr) bool) error, call uintptr, b []byte) (n int, err error) {
	var errno unix.Errno
	waitErr := when(func(fd uintptr) bool {
		for {
			var r uintptr
			r, _, errno = unix.RawSyscall(call, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
			switch errno {
			case 0:
				n = int(r)
				return true
			case unix.EINTR:
			default:
				return errno != unix.EAGAIN
			}
		}
	})
	switch {
	case waitErr != nil:
		return 0, waitErr
	case errno != 0:
		return 0, os.NewSyscallError("operations", errno)
	}
	return n, nil
}
