package term

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gdamore/tcell/v3"
)

// Options are what a person has chosen.
type Options struct {
	Path    string // of the terminal, "/dev/tty"
	Color   bool
	Mouse   bool
	Unicode bool
}

// Kind says what an Event is.
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

// Event is something that a person did.
type Event struct {
	Kind Kind
	// Key is the character typed, or the name of the key: "enter", "esc", "tab", "backtab",
	// "backspace", "delete", "up", "down", "left", "right", "home", "end", "pgup", "pgdn",
	// "space", "ctrl-a" to "ctrl-z". Of a mouse it is "left", "right", "wheel-up",
	// "wheel-down", "drag" or "release".
	Key     string
	Text    string // pasted
	X, Y    int
	Focused bool
	At      time.Time
}

// Frame is what the whole terminal shows.
type Frame struct {
	ID     int      // given back when it is painted
	Lines  []string // text with SGR; what is too long is cut
	Cursor bool
	X, Y   int // of the cursor
}

// Terminal is a terminal in full-screen mode.
type Terminal struct {
	Events <-chan Event

	screen tcell.Screen
	dev    *device
	color  bool

	frames chan Frame // the newest that is not painted yet
	redo   chan struct{}
	quit   chan struct{}
	all    sync.WaitGroup
	once   sync.Once

	mu      sync.Mutex // held while a frame is painted, and while the terminal is another's
	paused  bool
	painted func(frame int, at time.Time)
}

// Open takes the terminal. painted, which may be nil, is called for each frame when the
// terminal has taken it.
func Open(o Options, painted func(frame int, at time.Time)) (*Terminal, error) {
	dev := &device{path: o.Path}
	return open(dev, dev, o, painted)
}

func open(line tcell.Tty, dev *device, o Options, painted func(frame int, at time.Time)) (*Terminal, error) {
	opts := []tcell.TerminfoScreenOption{
		// Asking a terminal what it can takes a round trip, and a second where it does not
		// answer; nothing that it would say is needed here.
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
		Events: events, screen: screen, dev: dev, color: o.Color, painted: painted,
		frames: make(chan Frame, 1), redo: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	t.all.Go(func() { t.read(events) })
	t.all.Go(t.paint)
	return t, nil
}

// Size is how many cells the terminal has.
func (t *Terminal) Size() (cols, rows int) { return t.screen.Size() }

// Draw shows a frame as soon as the terminal has taken the one before. A frame that waited
// for that is left out.
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

// Redraw writes the whole screen anew.
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

// Pause gives the terminal back as it was while f uses it.
func (t *Terminal) Pause(f func()) error {
	t.mu.Lock()
	t.paused = true
	err := t.screen.Suspend()
	t.mu.Unlock()
	if err != nil {
		return fmt.Errorf("give the terminal away: %w", err)
	}
	f()
	t.mu.Lock()
	err = t.screen.Resume()
	t.paused = false
	t.mu.Unlock()
	if err != nil {
		return fmt.Errorf("take the terminal again: %w", err)
	}
	t.Redraw()
	return nil
}

// Suspend gives the terminal back and stops the process and those of its group, as Ctrl-z
// does, until the shell lets it go on.
func (t *Terminal) Suspend() error {
	return t.Pause(func() { _ = syscall.Kill(0, syscall.SIGTSTP) })
}

// Copy puts a text into the clipboard of the terminal, where it has one (OSC 52).
func (t *Terminal) Copy(text string) { t.screen.SetClipboard([]byte(text)) }

// Title sets the title of the window. It is given back at the end.
func (t *Terminal) Title(text string) { t.screen.SetTitle(text) }

// Close gives the terminal back as it was.
func (t *Terminal) Close() {
	t.once.Do(func() {
		close(t.quit)
		if t.dev != nil {
			t.dev.giveUpSoon()
		}
		t.screen.Fini()
		t.all.Wait()
	})
}

// read turns what the library tells into events.
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

// names of keys that are no characters.
var names = map[tcell.Key]string{
	tcell.KeyEnter: "enter", tcell.KeyEsc: "esc", tcell.KeyTab: "tab", tcell.KeyBacktab: "backtab", tcell.KeyBackspace: "backspace",
	tcell.KeyDelete: "delete", tcell.KeyUp: "up", tcell.KeyDown: "down", tcell.KeyLeft: "left", tcell.KeyRight: "right",
	tcell.KeyHome: "home", tcell.KeyEnd: "end", tcell.KeyPgUp: "pgup", tcell.KeyPgDn: "pgdn",
}

func keyName(ev *tcell.EventKey) string {
	if ev.Modifiers()&(tcell.ModAlt|tcell.ModMeta) != 0 {
		return "" // no key of the screen has it
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

// typed is what a key writes.
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
