package term

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gdamore/tcell/v3"
)

// Options configure a Terminal.
type Options struct {
	Path    string // of the terminal, "/dev/tty"
	Color   bool
	Mouse   bool
	Unicode bool
	// Tmux, if the terminal is a pane of tmux, returns the expansion of a format.
	Tmux func(ctx context.Context, format string) (string, error)
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
	line   io.Writer
	tmux   func(ctx context.Context, format string) (string, error)
	color  bool

	frames                  chan Frame // newest frame not painted yet
	redo                    chan struct{}
	quit                    chan struct{}
	reader, painter, alerts sync.WaitGroup
	once                    sync.Once

	mu      sync.Mutex // held while a frame is painted, and while the terminal is lent
	paused  bool
	painted func(frame int, at time.Time)
}

// Open opens the terminal in full-screen mode. painted, which may be nil, is called for each frame
// once it is written.
func Open(o Options, painted func(frame int, at time.Time)) (*Terminal, error) {
	dev := &device{path: o.Path}
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
	screen, err := tcell.NewTerminfoScreenFromTty(line, opts...)
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
		Events: events, screen: screen, dev: dev, line: line, tmux: o.Tmux, color: o.Color, painted: painted,
		frames: make(chan Frame, 1), redo: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	t.reader.Go(func() { t.read(events) })
	t.painter.Go(t.paint)
	return t, nil
}

// Size returns the number of columns and rows.
func (t *Terminal) Size() (cols, rows int) { return t.screen.Size() }

// Draw shows a frame as soon as the previous one is written. It replaces a frame that is still
// waiting.
func (t *Terminal) Draw(f Frame) {
	for {
		select {
		case t.frames <- f:
			return
		default:
		}
		select {
		case <-t.frames:
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
	for {
		select {
		case <-t.quit:
			return
		case <-t.redo:
			t.mu.Lock()
			if !t.paused {
				t.screen.Sync()
			}
			t.mu.Unlock()
		case f := <-t.frames:
			t.mu.Lock()
			if !t.paused {
				t.put(f)
				t.screen.Show()
			}
			t.mu.Unlock()
			if t.painted != nil {
				t.painted(f.ID, time.Now())
			}
		}
	}
}

func (t *Terminal) put(f Frame) {
	cols, rows := t.screen.Size()
	for y := range rows {
		line := ""
		if y < len(f.Lines) {
			line = f.Lines[y]
		}
		putLine(t.screen, y, cols, line)
	}
	if f.Cursor {
		t.screen.ShowCursor(f.X, f.Y)
	} else {
		t.screen.HideCursor()
	}
}

// Pause restores the terminal while f uses it.
func (t *Terminal) Pause(f func()) error {
	t.mu.Lock()
	t.paused = true
	err := t.screen.Suspend()
	t.mu.Unlock()
	if err != nil {
		return fmt.Errorf("release the terminal: %w", err)
	}
	f()
	t.mu.Lock()
	err = t.screen.Resume()
	t.paused = false
	t.mu.Unlock()
	if err != nil {
		return fmt.Errorf("set up the terminal again: %w", err)
	}
	t.Redraw()
	return nil
}

// Suspend restores the terminal and stops the process group, as Ctrl-z does, until the shell
// continues it.
func (t *Terminal) Suspend() error {
	return t.Pause(func() { _ = syscall.Kill(0, syscall.SIGTSTP) })
}

// Copy sets the clipboard of a terminal that has one (OSC 52).
func (t *Terminal) Copy(text string) { t.screen.SetClipboard([]byte(text)) }

// Title sets the title of the window, which is restored at the end.
func (t *Terminal) Title(text string) { t.screen.SetTitle(text) }

// Close restores the terminal.
func (t *Terminal) Close() {
	t.once.Do(func() {
		close(t.quit)
		if t.dev != nil {
			t.dev.giveUpSoon()
		}
		t.alerts.Wait()
		t.painter.Wait() // the library's screen may not be drawn on while it ends
		t.screen.Fini()
		t.reader.Wait()
	})
}

// read converts the library's events.
func (t *Terminal) read(out chan<- Event) {
	defer close(out)
	var pasted *strings.Builder
	down := false
	for ev := range t.screen.EventQ() {
		e := Event{At: time.Now()}
		switch ev := ev.(type) {
		case *tcell.EventPaste:
			if ev.Start() {
				pasted = &strings.Builder{}
				continue
			}
			if pasted == nil {
				continue
			}
			e.Kind, e.Text = Paste, pasted.String()
			pasted = nil
		case *tcell.EventKey:
			e.Kind, e.Key = Key, keyName(ev)
			if pasted != nil {
				pasted.WriteString(typed(e.Key))
				continue
			}
			if e.Key == "" {
				continue
			}
		case *tcell.EventMouse:
			e.Kind = Mouse
			e.X, e.Y = ev.Position()
			switch b := ev.Buttons(); {
			case b&tcell.WheelUp != 0:
				e.Key = "wheel-up"
			case b&tcell.WheelDown != 0:
				e.Key = "wheel-down"
			case b&tcell.Button1 != 0 && down:
				e.Key = "drag"
			case b&tcell.Button1 != 0:
				e.Key, down = "left", true
			case b&tcell.Button2 != 0:
				e.Key = "right"
			default:
				if !down {
					continue
				}
				e.Key, down = "release", false
			}
		case *tcell.EventResize:
			e.Kind = Resize
			e.X, e.Y = ev.Size()
		case *tcell.EventFocus:
			e.Kind, e.Focused = Focus, ev.Focused
		case *tcell.EventError:
			e.Kind = Gone
		default:
			continue
		}
		select {
		case out <- e:
		case <-t.quit:
			return
		}
	}
}

// names has the names of keys without a character.
var names = map[tcell.Key]string{
	tcell.KeyEnter: "enter", tcell.KeyEsc: "esc", tcell.KeyTab: "tab", tcell.KeyBacktab: "backtab", tcell.KeyBackspace: "backspace",
	tcell.KeyDelete: "delete", tcell.KeyUp: "up", tcell.KeyDown: "down", tcell.KeyLeft: "left", tcell.KeyRight: "right",
	tcell.KeyHome: "home", tcell.KeyEnd: "end", tcell.KeyPgUp: "pgup", tcell.KeyPgDn: "pgdn",
}

func keyName(ev *tcell.EventKey) string {
	if ev.Modifiers()&(tcell.ModAlt|tcell.ModMeta) != 0 {
		return "" // a key that the screen does not use
	}
	if ev.Key() == tcell.KeyRune {
		if ev.Modifiers()&tcell.ModCtrl != 0 {
			return "ctrl-" + strings.ToLower(ev.Str())
		}
		if ev.Str() == " " {
			return "space"
		}
		return ev.Str()
	}
	if name, ok := names[ev.Key()]; ok {
		return name
	}
	if k := ev.Key(); k >= tcell.KeyCtrlA && k <= tcell.KeyCtrlZ {
		return "ctrl-" + string(rune('a'+k-tcell.KeyCtrlA))
	}
	return ""
}

// typed returns the text that a key types.
func typed(key string) string {
	switch key {
	case "enter", "ctrl-j":
		return "\n"
	case "tab":
		return "\t"
	case "space":
		return " "
	}
	if _, size := decode(key); size == len(key) {
		return key
	}
	return ""
}
