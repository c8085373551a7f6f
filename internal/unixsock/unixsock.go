// Package unixsock opens Unix sockets without package net. Package net links the C library, whose
// dynamic linking would be a quarter of the start of cmd/teamctl-shim, which starts for every agent
// and for every tool call.
//
// A connection is an *os.File: reads and writes wait in the runtime's poller, have deadlines and
// end with os.ErrClosed when the file is closed. Its Fd must not be used, because it makes the
// socket blocking; SyscallConn does not.
package unixsock

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Listener accepts the connections of a path.
type Listener struct {
	file *os.File
	conn syscall.RawConn
}

// Listen binds a stream socket to a path that does not exist.
func Listen(path string) (*Listener, error) {
	f, err := open(unix.SOCK_STREAM, path, func(fd int, at unix.Sockaddr) error {
		if err := unix.Bind(fd, at); err != nil {
			return &os.PathError{Op: "bind", Path: path, Err: err}
		}
		if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
			return &os.PathError{Op: "listen", Path: path, Err: err}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	c, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Listener{file: f, conn: c}, nil
}

// Accept waits for the next connection. After Close it returns os.ErrClosed.
func (l *Listener) Accept() (*os.File, error) {
	var (
		fd  int
		err error
	)
	if closed := l.conn.Read(func(on uintptr) bool {
		fd, err = accept(int(on))
		return !errors.Is(err, unix.EAGAIN)
	}); closed != nil {
		return nil, os.ErrClosed
	}
	if err != nil {
		return nil, &os.PathError{Op: "accept", Path: l.file.Name(), Err: err}
	}
	return os.NewFile(uintptr(fd), l.file.Name()), nil
}

// accept takes a connection that waits; its descriptor is non-blocking.
func accept(on int) (int, error) {
	for {
		syscall.ForkLock.RLock()
		fd, _, err := unix.Accept(on)
		if err == nil {
			unix.CloseOnExec(fd)
		}
		syscall.ForkLock.RUnlock()
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED):
			continue
		case err != nil:
			return -1, err
		}
		if err := unix.SetNonblock(fd, true); err != nil {
			return -1, errors.Join(err, unix.Close(fd))
		}
		return fd, nil
	}
}

// Close stops listening. The path stays.
func (l *Listener) Close() error { return l.file.Close() }

// Dial connects to the stream socket of a path. It does not wait for a listener whose queue is
// full: the error is EAGAIN.
func Dial(path string) (*os.File, error) {
	return open(unix.SOCK_STREAM, path, func(fd int, at unix.Sockaddr) error {
		for {
			err := unix.Connect(fd, at)
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil:
				return &os.PathError{Op: "connect", Path: path, Err: err}
			}
			return nil
		}
	})
}

// ListenDatagram binds a datagram socket to a path that does not exist. A read returns one datagram,
// cut off if it is longer than the buffer.
func ListenDatagram(path string) (*os.File, error) {
	return open(unix.SOCK_DGRAM, path, func(fd int, at unix.Sockaddr) error {
		if err := unix.Bind(fd, at); err != nil {
			return &os.PathError{Op: "bind", Path: path, Err: err}
		}
		return nil
	})
}

// open makes a non-blocking socket and sets it up.
func open(kind int, path string, setUp func(fd int, at unix.Sockaddr) error) (*os.File, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_UNIX, kind, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, &os.PathError{Op: "socket", Path: path, Err: err}
	}
	if err = unix.SetNonblock(fd, true); err == nil {
		err = setUp(fd, &unix.SockaddrUnix{Name: path})
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), path), nil
}
