package term

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"
)

// device is the controlling terminal. It is opened separately, so that its reads and writes can be
// cancelled: a terminal that accepts no output (Ctrl-s) must not keep the screen from ending.
type device struct {
	path    string
	writing sync.Mutex // held during a write

	mu    sync.Mutex
	file  *os.File
	fd    int
	saved *xterm.State
	ends  bool // the screen ends: each write has giveUp
	stuck bool // a write had that and failed, so more would
}

func (d *device) Start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file != nil {
		return nil
	}
	f, err := os.OpenFile(d.path, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("open the terminal: %w", err)
	}
	raw, err := f.SyscallConn()
	fd := -1
	if err == nil {
		err = raw.Control(func(p uintptr) { fd = int(p) })
	}
	if err == nil {
		d.saved, err = xterm.MakeRaw(fd)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("prepare the terminal: %w", err), f.Close())
	}
	d.file, d.fd, d.ends, d.stuck = f, fd, false, false
	return nil
}

func (d *device) open() *os.File {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.file
}

func (d *device) Read(b []byte) (int, error) {
	if f := d.open(); f != nil {
		return f.Read(b)
	}
	return 0, os.ErrClosed
}

func (d *device) Write(b []byte) (int, error) {
	d.mu.Lock()
	f, stuck := d.file, d.stuck
	switch {
	case f == nil:
		d.mu.Unlock()
		return 0, os.ErrClosed
	case stuck:
		d.mu.Unlock()
		return 0, os.ErrDeadlineExceeded
	case d.ends: // since the write began, not since the end did: this program may be slow, too
		_ = f.SetWriteDeadline(time.Now().Add(giveUp))
	}
	d.mu.Unlock()
	d.writing.Lock()
	n, err := f.Write(b)
	d.writing.Unlock()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		d.mu.Lock()
		d.stuck = true
		d.mu.Unlock()
	}
	return n, err
}

// Drain ends a blocked Read. A running write gets a moment to complete.
func (d *device) Drain() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file == nil || d.ends {
		return
	}
	d.ends = true
	// A file without deadlines does not block either.
	_ = d.file.SetWriteDeadline(time.Now().Add(giveUp))
	_ = d.file.SetReadDeadline(time.Now())
}

// giveUp is how long the end of the screen waits for a terminal that accepts no output.
const giveUp = 500 * time.Millisecond

func (d *device) Stop() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file == nil {
		return nil
	}
	err := errors.Join(xterm.Restore(d.fd, d.saved), d.file.Close())
	d.file = nil
	return err
}

func (d *device) Size() (cols, rows int, err error) {
	d.mu.Lock()
	f, fd := d.file, d.fd
	d.mu.Unlock()
	if f == nil {
		return 0, 0, os.ErrClosed
	}
	ws, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, err
	}
	if ws.Col == 0 || ws.Row == 0 { // a line whose size was never set
		return 80, 24, nil
	}
	return int(ws.Col), int(ws.Row), nil
}
