package hookcall

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/fileid"
	"github.com/teamctl/teamctl/team"
)

// done is all that a supervisor sends for which nothing is left to do: the upgrade, as package
// control writes it, and one frame with a result.
func done() []byte {
	head := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + Protocol + "\r\n\r\n"
	b := binary.BigEndian.AppendUint32([]byte(head), uint32(1+len(Done)))
	return append(append(b, 0), Done...)
}

// ask reports whether the supervisor says that nothing is left to do.
func ask(l team.Layout, r Request) bool {
	of := fileid.At(l.Ledger())
	if of == "" || r.Program == "" {
		return false
	}
	c, err := dial(l.Socket(), time.Now().Add(Within))
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(c.fd) }()
	b := make([]byte, 0, 1024+len(r.Input))
	b = append(b, "POST "+Path+" HTTP/1.1\r\nHost: supervisor\r\n"+LedgerHeader+": "+of+"\r\nConnection: Upgrade\r\nUpgrade: "+Protocol+"\r\nContent-Length: 0\r\n\r\n"...)
	at := len(b)
	b = r.Append(append(b, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return c.write(b) == nil && c.reads(string(done()))
}

// conn is a connection by system calls: package net and its poller would be a good part of the
// time of a hook.
type conn struct {
	fd    int
	until time.Time
}

var errLate = errors.New("the supervisor does not answer in time")

// dial connects to a supervisor of our own.
func dial(socket string, until time.Time) (*conn, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	c := &conn{fd, until}
	err = c.try(func() error { return unix.Connect(fd, &unix.SockaddrUnix{Name: socket}) })
	if err == nil {
		var uid int
		if uid, err = peerUID(fd); err == nil && uid != os.Getuid() {
			err = unix.EACCES
		}
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return c, nil
}

// try makes a system call that may block. With a time limit the kernel does not restart a call
// after a signal, and Go's own scheduler sends signals.
func (c *conn) try(call func() error) error {
	for {
		left := time.Until(c.until)
		if left <= 0 {
			return errLate
		}
		limit := unix.NsecToTimeval(max(left, time.Millisecond).Nanoseconds())
		if err := errors.Join(unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit),
			unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit)); err != nil {
			return err
		}
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (c *conn) write(b []byte) error {
	for len(b) > 0 {
		if err := c.try(func() error {
			n, err := unix.Write(c.fd, b)
			b = b[max(n, 0):]
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// reads reports whether want arrives. It stops at the first byte that differs.
func (c *conn) reads(want string) bool {
	buf := make([]byte, len(want))
	for len(want) > 0 {
		n := 0
		if err := c.try(func() (err error) {
			n, err = unix.Read(c.fd, buf[:len(want)])
			return err
		}); err != nil || n <= 0 || string(buf[:n]) != want[:n] {
			return false
		}
		want = want[n:]
	}
	return true
}
