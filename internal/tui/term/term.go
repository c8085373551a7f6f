package term

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gdamore/tcell/v3"
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
		t.crashed.Store(true)
		t.failed(what, debug.Stack())
	}
}

// caught is the same for the device.
func caught(failed func(what any, stack []byte)) {
	if failed == nil {
		return
	}
	if what := recover(); what != nil {
		failed(what, debug.Stack())
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

	screen tcell.Screen
	dev    *device
	line   tcell.Tty
	held   *valid
	tmux   func(ctx context.Context, format string) (string, error)
	color  bool

	frames                  chan Frame  // newest frame not painted yet
	titles                  chan string // newest title not written yet
	copies                  chan string // newest content of the clipboard not written yet
	redo                    chan struct{}
	drop                    chan struct{} // tells the reader to drop an input for which there is no room
	continued               chan struct{} // the process was continued while the terminal is lent
	quit                    chan struct{}
	reader, painter, alerts sync.WaitGroup
	watcher                 sync.WaitGroup
	once                    sync.Once
	shown                   shown

	mu      sync.Mutex // held while a frame is painted, and while the terminal is lent
	paused  bool
	painted func(frame int, at time.Time)
	failed  func(what any, stack []byte)
	crashed atomic.Bool // a goroutine has panicked, perhaps in the library, whose lock is then held
}

// Open opens the terminal in full-screen mode. painted, which may be nil, is called for each frame
// once it is written.
func Open(o Options, painted func(frame int, at time.Time)) (*Terminal, error) {
	dev := &device{path: o.Path, failed: o.Failed}
	return open(dev, dev, o, painted)
}

func open(line tcell.Tty, dev *device, o Options, painted func(frame int, at time.Time)) (*Terminal, error) {
	opts := []tcell.TerminfoScreenOption{
		// Querying a terminal's capabilities takes a round trip, or a second if it does not answer;
		// they are not needed here.
		tcell.OptNegotiation(false), tcell.OptSanitizeContent(true),
	}
	if !o.Color {
		opts = append(opts, tcell.OptColors(0))
	}
	held := newValid(&lean{Tty: line})
	screen, err := tcell.NewTerminfoScreenFromTty(held, opts...)
	if err == nil {
		err = screen.Init()
	}
	if err != nil {
		return nil, fmt.Errorf("take the terminal: %w", err)
	}
	if o.Mouse {
		screen.EnableMouse(tcell.MouseButtonEvents, tcell.MouseDragEvents)
	}
	screen.EnablePaste()
	screen.EnableFocus()
	events := make(chan Event, 64)
	t := &Terminal{
		Events: events, screen: screen, dev: dev, line: line, held: held, tmux: o.Tmux, color: o.Color, painted: painted, failed: o.Failed,
		frames: make(chan Frame, 1), titles: make(chan string, 1), copies: make(chan string, 1), redo: make(chan struct{}, 1), drop: make(chan struct{}), continued: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	t.shown.lost.Store(true) // the library learns the size with the first frame
	t.reader.Go(func() { t.read(events) })
	t.painter.Go(t.paint)
	conts := make(chan os.Signal, 1)
	signal.Notify(conts, syscall.SIGCONT)
	t.watcher.Go(func() { t.watch(conts, events) })
	return t, nil
}

// Size returns the number of columns and rows. It does not ask the library, which keeps its lock
// during a write.
func (t *Terminal) Size() (cols, rows int) {
	size, err := t.line.WindowSize()
	if err != nil {
		return 0, 0 // the terminal is gone
	}
	return size.Width, size.Height
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
	select {
	case t.redo <- struct{}{}:
	default:
	}
}

func (t *Terminal) paint() {
	defer t.caught()
	for {
		select {
		case <-t.quit:
			t.copyNow()
			return
		case <-t.redo:
			t.locked(func() {
				if !t.paused {
					t.screen.Sync()
				}
			})
		case text := <-t.titles:
			t.locked(func() { t.screen.SetTitle(text) }) // while the terminal is lent, kept for later
		case text := <-t.copies:
			t.locked(func() { t.screen.SetClipboard([]byte(text)) })
		case f := <-t.frames:
			t.locked(func() {
				if !t.paused && t.put(f) {
					t.screen.Show()
				}
			})
			if t.painted != nil {
				t.painted(f.ID, time.Now())
			}
		}
	}
}

// locked calls f with the lock, which a panic releases: the terminal can still be restored.
func (t *Terminal) locked(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// copyNow sets the clipboard before the terminal is restored.
func (t *Terminal) copyNow() {
	select {
	case text := <-t.copies:
		t.screen.SetClipboard([]byte(text))
	default:
	}
}

// shown is what the library's screen has been given. Most of a frame is that of the frame before:
// a line that has not changed is not looked through again.
type shown struct {
	lost       atomic.Bool // the library's screen may have lost it: its size has changed
	cols, rows int
	lines      []string
	cursor     bool
	x, y       int
}

// put gives the library's screen what a frame changes, and reports whether it changes anything.
func (t *Terminal) put(f Frame) (changes bool) {
	cols, rows := t.screen.Size()
	s := &t.shown
	all := s.lost.Swap(false) || s.cols != cols || s.rows != rows
	if all {
		s.cols, s.rows, s.lines = cols, rows, make([]string, rows)
	}
	changes = all
	for y := range rows {
		line := ""
		if y < len(f.Lines) {
			line = f.Lines[y]
		}
		if all || line != s.lines[y] {
			putLine(t.screen, y, cols, line)
			s.lines[y], changes = line, true
		}
	}
	if all || f.Cursor != s.cursor || f.X != s.x || f.Y != s.y {
		s.cursor, s.x, s.y, changes = f.Cursor, f.X, f.Y, true
		if f.Cursor {
			t.screen.ShowCursor(f.X, f.Y)
		} else {
			t.screen.HideCursor()
		}
	}
	return changes
}

// Pause restores the terminal while f uses it.
func (t *Terminal) Pause(f func()) error {
	t.mu.Lock()
	t.copyNow()
	t.paused = true
	err := t.release()
	t.mu.Unlock()
	if err != nil {
		return fmt.Errorf("release the terminal: %w", err)
	}
	f()
	t.mu.Lock()
	err = t.resume()
	t.paused = false
	t.mu.Unlock()
	if err != nil {
		return fmt.Errorf("set up the terminal again: %w", err)
	}
	t.Redraw()
	return nil
}

// release restores the terminal.
func (t *Terminal) release() error {
	defer t.dropping()()
	t.held.hold()
	return t.screen.Suspend()
}

// resume is the opposite of release.
func (t *Terminal) resume() error {
	defer t.dropping()()
	t.shown.lost.Store(true)
	return t.screen.Resume()
}

// dropping lets the reader drop input for which there is no room, until it is stopped: the library
// passes on what was typed before it ends or begins, and who takes events waits for that.
func (t *Terminal) dropping() (stop func()) {
	var dropper sync.WaitGroup
	done := make(chan struct{})
	dropper.Go(func() {
		for {
			select {
			case t.drop <- struct{}{}:
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		dropper.Wait()
	}
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

// watch takes the terminal again each time the process is continued. Whoever stopped it, the shell
// or another program may have changed the modes and the size of the terminal, and what it shows.
func (t *Terminal) watch(conts chan os.Signal, out chan<- Event) {
	defer t.caught()
	defer signal.Stop(conts)
	for {
		select {
		case <-t.quit:
			return
		case <-conts:
		}
		lent, err := t.again()
		if lent {
			continue
		}
		e := Event{Kind: Resize, At: time.Now()} // a new frame
		if err != nil {
			e.Kind = Gone
		}
		select {
		case out <- e:
		case <-t.quit:
			return
		}
	}
}

// again sets up the terminal once more. One that is lent is set up when it is returned.
func (t *Terminal) again() (lent bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.paused {
		if err = t.release(); err == nil {
			err = t.resume()
		}
		return false, err
	}
	select {
	case t.continued <- struct{}{}:
	default:
	}
	return true, nil
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
		if t.dev != nil {
			t.dev.giveUpSoon()
		}
		t.alerts.Wait()
		t.painter.Wait() // the library's screen may not be drawn on while it ends
		if !t.crashed.Load() {
			t.end()
			return
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			t.end()
		}()
		late := time.NewTimer(2 * giveUp)
		defer late.Stop()
		select {
		case <-ended:
		case <-late.C: // the library does not come back
			_, _ = t.line.Write([]byte(plainModes))
			_ = t.line.Stop()
		}
	})
}

// end ends the library's screen.
func (t *Terminal) end() {
	_ = t.release() // while its queues are still emptied
	t.screen.Fini()
	t.reader.Wait()
}

// plainModes resets what the library sets: attributes, the keypad, mouse, focus and paste, the cursor
// and wrapping, the other screen, and the title (xterm, "Control Sequences"; ECMA-48).
const plainModes = "\x1b[m\x1b[?1l\x1b>\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?25h\x1b[?7h\x1b[?1049l\x1b[23;2t"
