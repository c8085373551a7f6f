package term

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Options configure a Terminal.
type Options struct {
	Path    string // of the terminal, "/dev/tty"
	Color   bool
	Mouse   bool
	Unicode bool
	// Tmux, if the terminal is a pane of tmux, returns the expansion of a format.
	Tmux func(ctx context.Context, format string) (string, error)
	// Failed, if set, is called once a goroutine of the terminal has panicked; otherwise the panic
	// ends the process. The terminal is then to be closed.
	Failed func(what any, stack []byte)
}

// caught is deferred by the goroutines of the terminal: a panic is passed to failed.
func (t *Terminal) caught() {
	if t.failed == nil {
		return
	}
	if what := recover(); what != nil {
		t.failed(what, debug.Stack())
	}
}

// Kind is the kind of an Event.
type Kind int

// Kinds of events.
const (
	Key Kind = iota
	Paste
	Mouse
	Resize
	Focus
	Gone // the terminal is no longer there
)

// Event is an input.
type Event struct {
	Kind Kind
	// Key is the typed character, or the name of the key: "enter", "esc", "tab", "backtab",
	// "backspace", "delete", "up", "down", "left", "right", "home", "end", "pgup", "pgdn", "space",
	// "ctrl-a" to "ctrl-z". For a mouse it is "left", "right", "wheel-up", "wheel-down", "drag" or
	// "release".
	Key     string
	Text    string // pasted
	X, Y    int
	Focused bool
	At      time.Time
}

// Frame is the content of the whole terminal.
type Frame struct {
	ID     int      // passed to painted
	Lines  []string // text with SGR; longer lines are cut
	Cursor bool
	X, Y   int // of the cursor
}

// Terminal is a terminal in full-screen mode.
type Terminal struct {
	Events <-chan Event

	line    line
	events  chan Event
	mouse   bool
	tmux    func(ctx context.Context, format string) (string, error)
	painted func(frame int, at time.Time)
	failed  func(what any, stack []byte)

	frames                  chan Frame  // newest frame not painted yet
	titles                  chan string // newest title not written yet
	copies                  chan string // newest content of the clipboard not written yet
	redo                    chan struct{}
	continued               chan struct{} // the process was continued while the terminal is lent
	quit                    chan struct{}
	reader, painter, alerts sync.WaitGroup
	watcher                 sync.WaitGroup
	once                    sync.Once

	mu      sync.Mutex // of the following, but for canvas.lose; held while a frame is painted
	canvas  *canvas
	reading chan struct{} // closed to end the readers; nil while the terminal is lent
	title   string
	copied  string // to be written when the terminal is back
}

// line is a terminal in raw mode between Start and Stop: a device, or what a test has instead.
type line interface {
	Start() error
	Read(b []byte) (int, error)
	Write(b []byte) (int, error)
	Drain() // ends a Read, and bounds a Write, until Stop
	Stop() error
	Size() (cols, rows int, err error)
}

// Open opens the terminal in full-screen mode. painted, which may be nil, is called for each frame
// once it is written.
func Open(o Options, painted func(frame int, at time.Time)) (*Terminal, error) {
	return open(&device{path: o.Path}, o, painted)
}

func open(l line, o Options, painted func(frame int, at time.Time)) (*Terminal, error) {
	events := make(chan Event, 64)
	t := &Terminal{
		Events: events, events: events, line: l, mouse: o.Mouse, tmux: o.Tmux, painted: painted, failed: o.Failed,
		frames: make(chan Frame, 1), titles: make(chan string, 1), copies: make(chan string, 1), redo: make(chan struct{}, 1), continued: make(chan struct{}, 1), quit: make(chan struct{}),
		canvas: newCanvas(o.Color),
	}
	// One channel each: a signal that finds its channel full is dropped.
	continues, sizes := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(continues, syscall.SIGCONT)
	signal.Notify(sizes, syscall.SIGWINCH)
	if err := t.take(); err != nil {
		signal.Stop(continues)
		signal.Stop(sizes)
		return nil, fmt.Errorf("take the terminal: %w", err)
	}
	t.painter.Go(t.paint)
	t.watcher.Go(func() { t.watch(continues, sizes) })
	return t, nil
}

// Size returns the number of columns and rows, 0 of a terminal that is gone.
func (t *Terminal) Size() (cols, rows int) {
	cols, rows, _ = t.line.Size()
	return cols, rows
}

// Draw shows a frame as soon as the previous one is written. It replaces a frame that is still
// waiting.
func (t *Terminal) Draw(f Frame) { replace(t.frames, f) }

// replace puts a value into a channel of one, instead of the value that is there.
func replace[T any](c chan T, v T) {
	for {
		select {
		case c <- v:
			return
		default:
		}
		select {
		case <-c:
		default:
		}
	}
}

// Redraw writes the whole screen again.
func (t *Terminal) Redraw() {
	offer(t.redo, struct{}{})
}

func (t *Terminal) paint() {
	defer t.caught()
	for {
		select {
		case <-t.quit:
			return
		case <-t.redo:
			t.locked(func() {
				if t.reading != nil {
					t.write(t.canvas.redrawn())
				}
			})
		case text := <-t.titles:
			t.locked(func() {
				t.title = harmless(text)
				if t.reading != nil {
					t.write(titled(t.title))
				}
			})
		case text := <-t.copies:
			t.locked(func() {
				if t.reading != nil {
					t.write(copied(text))
				} else {
					t.copied = text
				}
			})
		case f := <-t.frames:
			t.locked(func() {
				if t.reading != nil {
					t.write(t.canvas.painted(f, t.Size))
				}
			})
			if t.painted != nil {
				t.painted(f.ID, time.Now())
			}
		}
	}
}

// write writes to the terminal. One that takes nothing has no one who sees it.
func (t *Terminal) write(b []byte) {
	if len(b) > 0 {
		_, _ = t.line.Write(b)
	}
}

// locked calls f with the lock, which a panic releases: the terminal can still be restored.
func (t *Terminal) locked(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// take sets the terminal up and begins to read it.
func (t *Terminal) take() error {
	if err := t.line.Start(); err != nil {
		return err
	}
	t.canvas.lose()
	t.write(fullModes(t.mouse, t.title))
	if t.copied != "" {
		t.write(copied(t.copied))
		t.copied = ""
	}
	reading := make(chan struct{})
	t.reading = reading
	got := make(chan []byte)
	t.reader.Go(func() { t.receive(got, reading) })
	t.reader.Go(func() { t.read(got, reading) })
	return nil
}

// release restores the terminal. What is typed meanwhile and was not taken is dropped.
func (t *Terminal) release() error {
	if t.reading == nil {
		return nil
	}
	close(t.reading)
	t.reading = nil
	t.line.Drain()
	t.reader.Wait()
	select {
	case text := <-t.copies:
		t.write(copied(text))
	default:
	}
	t.write([]byte(plainModes))
	return t.line.Stop()
}

// Pause restores the terminal while f uses it.
func (t *Terminal) Pause(f func()) error {
	t.mu.Lock()
	err := t.release()
	t.mu.Unlock()
	if err != nil {
		return fmt.Errorf("release the terminal: %w", err)
	}
	f()
	t.mu.Lock()
	err = t.take()
	t.mu.Unlock()
	if err != nil {
		return fmt.Errorf("set up the terminal again: %w", err)
	}
	t.Redraw()
	return nil
}

// errNoShell is why a screen cannot be suspended.
var errNoShell = errors.New("it was not started by a shell with job control, so nothing could continue it")

// Suspend restores the terminal and stops the process group, as Ctrl-z does, until the shell
// continues it. The signal stops the process at some time after it is sent, and a shell sets the
// modes of the terminal while the process is stopped: only after SIGCONT may they be set up again.
func (t *Terminal) Suspend() error {
	if !suspendable() {
		return errNoShell
	}
	return t.Pause(func() {
		select {
		case <-t.continued: // earlier
		default:
		}
		if syscall.Kill(0, syscall.SIGTSTP) == nil {
			<-t.continued
		}
	})
}

// suspendable reports whether SIGTSTP stops the process: the system discards it in the process group
// of the session's leader, which no shell controls.
func suspendable() bool {
	sid, err := unix.Getsid(0)
	return err == nil && sid != syscall.Getpgrp() && !signal.Ignored(syscall.SIGTSTP)
}

// watch takes the terminal again each time the process is continued, since whoever stopped it, the
// shell or another program may have changed the modes and the size of the terminal, and what it
// shows; and passes on changes of the size. A full queue does not hold it up: who takes the events
// may be suspended, until this says that the process was continued.
func (t *Terminal) watch(continues, sizes chan os.Signal) {
	defer t.caught()
	defer signal.Stop(sizes)
	defer signal.Stop(continues)
	var e Event
	var due chan<- Event // nil if nothing is to be passed on
	for {
		var err error
		select {
		case <-t.quit:
			return
		case due <- e:
			due = nil
			continue
		case <-continues:
			var lent bool
			if lent, err = t.again(); lent {
				continue
			}
		case <-sizes:
			t.canvas.lose()
		}
		if due != nil && e.Kind == Gone {
			continue
		}
		due = t.events
		e = Event{Kind: Resize, At: time.Now()} // a new frame
		if err != nil {
			e.Kind = Gone
		}
		e.X, e.Y = t.Size()
	}
}

// again sets up the terminal once more. One that is lent is set up when it is returned.
func (t *Terminal) again() (lent bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reading != nil {
		if err = t.release(); err == nil {
			err = t.take()
		}
		return false, err
	}
	offer(t.continued, struct{}{})
	return true, nil
}

// offer puts a value into a channel that has room.
func offer[T any](c chan T, v T) {
	select {
	case c <- v:
	default:
	}
}

// Copy sets the clipboard of a terminal that has one (OSC 52), once what is being written is.
func (t *Terminal) Copy(text string) { replace(t.copies, text) }

// Title sets the title of the window, which is restored at the end, once what is being written is.
func (t *Terminal) Title(text string) { replace(t.titles, text) }

// Close restores the terminal.
func (t *Terminal) Close() {
	t.once.Do(func() {
		close(t.quit)
		t.watcher.Wait()
		t.line.Drain() // a Write that is blocked holds the lock
		t.alerts.Wait()
		t.painter.Wait()
		t.mu.Lock()
		defer t.mu.Unlock()
		_ = t.release()
		close(t.events)
	})
}
