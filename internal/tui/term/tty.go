package term

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/gdamore/tcell/v3/tty"
	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"
)

// device is the controlling terminal, as the library needs it. It is opened separately, so that
// its reads and writes can be cancelled: a terminal that accepts no output (Ctrl-s) must not keep
// the screen from ending.
type device struct {
	path    string
	failed  func(what any, stack []byte)
	writing sync.Mutex // held during a write

	mu    sync.Mutex
	file  *os.File
	fd    int
	saved *xterm.State
	stop  func() // stops watching for size changes
	ends  bool   // the screen ends: each write has giveUp
	stuck bool   // a write had that and failed, so more would
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
func (d *device) Drain() error {
	d.giveUpSoon()
	f := d.open()
	if f == nil {
		return nil
	}
	return f.SetReadDeadline(time.Now())
}

// giveUp is how long the end of the screen waits for a terminal that accepts no output.
const giveUp = 500 * time.Millisecond

func (d *device) Stop() error {
	d.NotifyResize(nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file == nil {
		return nil
	}
	err := errors.Join(xterm.Restore(d.fd, d.saved), d.file.Close())
	d.file = nil
	return err
}

func (d *device) Close() error { return d.Stop() }

// giveUpSoon ends a blocked Write, and bounds those to come.
func (d *device) giveUpSoon() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file != nil && !d.ends {
		d.ends = true
		_ = d.file.SetWriteDeadline(time.Now().Add(giveUp)) // a file without deadlines does not block either
	}
}

func (d *device) NotifyResize(resized chan<- bool) {
	d.mu.Lock()
	stop := d.stop
	d.stop = nil
	d.mu.Unlock()
	if stop != nil {
		stop()
	}
	if resized == nil {
		return
	}
	winch := make(chan os.Signal, 1)
	signal.Notify(winch, syscall.SIGWINCH)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer caught(d.failed)
		for {
			select {
			case <-winch:
				// The library writes the whole screen for each. While it writes, several are one.
				d.writing.Lock()
				d.writing.Unlock()
				select {
				case resized <- true:
				default:
				}
			case <-quit:
				return
			}
		}
	}()
	d.mu.Lock()
	d.stop = func() {
		signal.Stop(winch)
		close(quit)
		<-done
	}
	d.mu.Unlock()
}

func (d *device) WindowSize() (tty.WindowSize, error) {
	f := d.open()
	if f == nil {
		return tty.WindowSize{}, os.ErrClosed
	}
	ws, err := unix.IoctlGetWinsize(d.fd, unix.TIOCGWINSZ)
	if err != nil {
		return tty.WindowSize{}, err
	}
	size := tty.WindowSize{Width: int(ws.Col), Height: int(ws.Row)}
	if size.Width == 0 || size.Height == 0 { // a line whose size was never set
		size.Width, size.Height = 80, 24
	}
	return size, nil
}
