package unixsock

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// at returns a short path for a socket.
func at(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "us")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "s")
}

// TestStream checks a connection: both directions, its end, a deadline, and a read that Close ends.
func TestStream(t *testing.T) {
	t.Parallel()
	path := at(t)
	if _, err := Dial(path); !errors.Is(err, unix.ENOENT) {
		t.Errorf("without a socket: %v", err)
	}
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("bound twice: %v", err)
	}
	got := make(chan *os.File)
	go func() {
		defer close(got)
		for {
			c, err := l.Accept()
			if errors.Is(err, os.ErrClosed) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			got <- c
		}
	}()
	a, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	b := <-got
	buf := make([]byte, 8)
	for _, way := range [][2]*os.File{{a, b}, {b, a}} {
		if _, err := way[0].WriteString("hello"); err != nil {
			t.Fatal(err)
		}
		if n, err := way[1].Read(buf); err != nil || string(buf[:n]) != "hello" {
			t.Errorf("read %q, %v", buf[:n], err)
		}
	}
	if err := a.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read after the deadline: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Read(buf); !errors.Is(err, io.EOF) {
		t.Errorf("read at the end: %v", err)
	}
	if _, err := b.WriteString("x"); !errors.Is(err, unix.EPIPE) {
		t.Errorf("write after the end: %v", err)
	}
	ended := make(chan error)
	c, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	d := <-got
	go func() {
		_, err := c.Read(make([]byte, 1))
		ended <- err
	}()
	if err := errors.Join(b.Close(), c.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrClosed) && !errors.Is(err, io.EOF) {
		t.Errorf("read of a closed connection: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, more := <-got; more {
		t.Error("a connection after Close")
	}
	if _, err := Dial(path); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("after Close: %v", err)
	}
}

// TestDatagram checks that each read returns one datagram, and that Close ends a read.
func TestDatagram(t *testing.T) {
	t.Parallel()
	path := at(t)
	f, err := ListenDatagram(path)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if err := unix.Sendto(fd, []byte(text), 0, &unix.SockaddrUnix{Name: path}); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	for _, want := range []string{"one", "two"} {
		if n, err := f.Read(buf); err != nil || string(buf[:n]) != want {
			t.Errorf("read %q, %v, want %q", buf[:n], err, want)
		}
	}
	ended := make(chan error)
	go func() {
		_, err := f.Read(buf)
		ended <- err
	}()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Errorf("read of a closed socket: %v", err)
	}
}
