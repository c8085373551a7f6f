package pty

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/pty/vt"
	"github.com/teamctl/teamctl/backends/shim"
	"github.com/teamctl/teamctl/internal/openpty"
	"github.com/teamctl/teamctl/internal/unixsock"
	"github.com/teamctl/teamctl/team"
)

// Host returns the terminal that a shim holds for an agent of this backend, for
// the shim's main function: shim.Main(args, pty.Host()).
func Host() shim.Opener {
	return shim.Opener{Name: Name, Open: func(l backends.Launch) (shim.Terminal, error) { return openHost(l) }}
}

const (
	defaultCols, defaultRows = 120, 40

	// drainQuiet and drainMax limit the wait for the end of the output, which a
	// process that does not belong to the agent may keep open.
	drainQuiet = 250 * time.Millisecond
	drainMax   = 2 * time.Second
	// lookAgain is the interval at which a terminal is checked that the living
	// agent has closed: it may open it again, and there is no event for that.
	lookAgain = 250 * time.Millisecond
	logWithin = 2 * time.Second
	byeWithin = time.Second
)

// host is the shim's half of the backend. Its goroutines: one reads the
// terminal, one writes to it, one writes the log, one accepts clients, two
// serve each client.
type host struct {
	launch backends.Launch
	master *os.File // a duplicate, non-blocking: Close unblocks a Read
	slave  *os.File
	log    *logQueue
	input  *input

	draining chan struct{}
	readDone chan struct{}
	serving  sync.WaitGroup

	mu      sync.Mutex
	ln      *unixsock.Listener
	scan    vt.Scanner
	model   model
	clients map[*client]struct{}
	active  *client // the last that typed or resized
	closed  bool
	exit    *backends.Exit
}

func openHost(l backends.Launch) (*host, error) {
	h := &host{
		launch: l, clients: map[*client]struct{}{},
		model:    model{cols: orDefault(l.Cols, defaultCols), rows: orDefault(l.Rows, defaultRows)},
		draining: make(chan struct{}), readDone: make(chan struct{}),
	}
	f, err := bundle.OpenLog(l.Bundle.Log())
	if err != nil {
		return nil, err
	}
	h.log = newLogQueue(f)
	if err := h.openTerminal(); err != nil {
		_ = f.Close()
		return nil, err
	}
	h.input = newInput(h.master)
	// The previous owner of the path is dead, since this generation holds
	// run.lock.
	if err := h.listen(); err != nil {
		_ = errors.Join(h.master.Close(), h.slave.Close(), f.Close())
		return nil, err
	}
	return h, nil
}

func orDefault(n, def int) int {
	if n < 1 || n > vt.MaxSize {
		return def
	}
	return n
}

func (h *host) openTerminal() error {
	master, slave, err := openpty.Open()
	if err != nil {
		return err
	}
	h.master, h.slave = master, slave
	return h.setSize()
}

// setSize sets the terminal's size, which sends SIGWINCH to the program.
func (h *host) setSize() error {
	rc, err := h.master.SyscallConn()
	if err != nil {
		return fmt.Errorf("set the terminal's size: %w", err)
	}
	ws := unix.Winsize{Col: uint16(h.model.cols), Row: uint16(h.model.rows)}
	if cerr := rc.Control(func(fd uintptr) { err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &ws) }); cerr != nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("set the terminal's size: %w", err)
	}
	return nil
}

func (h *host) Slave() *os.File { return h.slave }

func (h *host) Refused(reason string) {
	_, _ = fmt.Fprintf(h.slave, "teamctl: error: %s\n", reason)
	h.Serve()
}

func (h *host) Serve() {
	_ = h.slave.Close()
	go h.log.run()
	go h.input.run()
	go h.read()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.accept(h.ln)
}

// read reads the agent's output to its end.
func (h *host) read() {
	defer close(h.readDone)
	buf := make([]byte, 32<<10)
	rc, err := h.master.SyscallConn()
	if err != nil {
		return
	}
	for {
		n, err := readAll(rc, buf)
		if n > 0 {
			h.log.put(buf[:n])
			h.output(buf[:n])
		}
		select {
		case <-h.draining:
			if err != nil {
				return
			}
			_ = h.master.SetReadDeadline(time.Now().Add(drainQuiet))
			continue
		default:
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, unix.EIO) && !errors.Is(err, io.EOF) {
			return
		}
		t := time.NewTimer(lookAgain)
		select {
		case <-t.C:
		case <-h.draining:
		}
		t.Stop()
	}
}

// readAll waits for output and reads everything available, as far as it fits: a
// terminal returns four kilobytes at a time, and the further processing has a
// cost per piece.
func readAll(rc syscall.RawConn, buf []byte) (n int, err error) {
	rerr := rc.Read(func(fd uintptr) bool {
		for n < len(buf) {
			var k int
			k, err = unix.Read(int(fd), buf[n:])
			switch {
			case errors.Is(err, unix.EINTR):
			case errors.Is(err, unix.EAGAIN):
				err = nil
				return n > 0
			case err != nil:
				return true
			case k == 0:
				err = io.EOF
				return true
			default:
				n += k
			}
		}
		return true
	})
	if err == nil {
		err = rerr
	}
	return n, err
}

// output passes a piece of output to the model and to the clients.
func (h *host) output(p []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.scan.Scan(p, func(k vt.Kind, piece []byte) {
		if k == vt.Query {
			h.question(piece)
			return
		}
		h.model.write(piece)
		for c := range h.clients {
			c.send(kindOutput, piece)
		}
	})
}

// question gets one answer to a terminal query: from the active client, or
// without one from the model.
func (h *host) question(q []byte) {
	if h.active != nil {
		h.active.send(kindOutput, q)
		return
	}
	if a := h.model.now().Answer(q); a != nil {
		_, _, _ = h.input.put(a)
	}
}

func (h *host) Drain() string {
	// The deadline unblocks a Read that began before the draining did.
	close(h.draining)
	_ = h.master.SetReadDeadline(time.Now().Add(drainQuiet))
	t := time.NewTimer(drainMax)
	defer t.Stop()
	select {
	case <-h.readDone:
	case <-t.C: // a process keeps writing
		h.stopReading()
	}
	h.mu.Lock()
	if rest := h.scan.Flush(); len(rest) > 0 {
		h.model.write(rest)
	}
	tail := bundle.LastLines(h.model.now().Text(bundle.TailLines), bundle.TailLines)
	h.mu.Unlock()
	h.log.close(logWithin)
	return tail
}

func (h *host) stopReading() {
	_ = h.master.Close()
	<-h.readDone
}

func (h *host) Close(e backends.Exit) {
	h.mu.Lock()
	h.closed, h.exit = true, &e
	for c := range h.clients {
		c.finish(appendJSON(nil, kindExit, e))
	}
	ln := h.ln
	h.mu.Unlock()
	h.input.close()
	_ = errors.Join(os.Remove(h.launch.Socket), ln.Close(), h.master.Close())
	gone := make(chan struct{})
	go func() {
		h.serving.Wait()
		close(gone)
	}()
	t := time.NewTimer(byeWithin)
	defer t.Stop()
	select {
	case <-gone:
		return
	case <-t.C:
	}
	h.mu.Lock()
	for c := range h.clients {
		_ = c.conn.Close()
	}
	h.mu.Unlock()
	<-gone
}

// resize requires mu.
func (h *host) resize(cols, rows int) error {
	if cols < 1 || rows < 1 || cols > vt.MaxSize || rows > vt.MaxSize {
		return team.Errorf(team.CodeInvalid, "a terminal of %dx%d", cols, rows)
	}
	if cols == h.model.cols && rows == h.model.rows {
		return nil
	}
	h.model.resize(cols, rows)
	return h.setSize()
}
