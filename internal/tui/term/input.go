package term

import (
	"strings"
	"time"

	"github.com/gdamore/tcell/v3"
)

// pasteSilence is how long nothing comes in a paste before ctrl-c or esc ends it: its end was lost.
const pasteSilence = time.Second

// The marks of a paste that follow an Esc at once. The library takes them for keys with Alt, and
// does not export their names.
const (
	pasteStart tcell.Key = 16384
	pasteEnd   tcell.Key = 16385
)

// input converts the library's events.
type input struct {
	pasted *strings.Builder // nil outside of a paste
	last   time.Time        // of the last event in a paste
	down   bool             // the left button
}

// read passes on what comes from the terminal, to the end of it.
func (t *Terminal) read(out chan<- Event) {
	defer close(out)
	defer func() {
		for range t.screen.EventQ() { // after a panic: the library's queue may not fill up
		}
	}()
	defer t.caught()
	var in input
	for ev := range t.screen.EventQ() {
		if _, ok := ev.(*tcell.EventResize); ok {
			t.shown.lost.Store(true)
		}
		for _, e := range in.events(ev, time.Now()) {
			drop := t.drop
			if e.Kind == Gone {
				drop = nil
			}
			select {
			case out <- e:
			case <-drop:
			case <-t.quit:
			}
		}
	}
}

// events returns what an event of the library means; nothing within a paste.
func (in *input) events(ev tcell.Event, at time.Time) []Event {
	e := Event{At: at}
	switch ev := ev.(type) {
	case *tcell.EventPaste:
		return in.paste(ev.Start(), at)
	case *tcell.EventKey:
		if k := ev.Key(); k == pasteStart || k == pasteEnd {
			return in.paste(k == pasteStart, at)
		}
		e.Kind, e.Key = Key, keyName(ev)
		if in.pasted != nil {
			silent := at.Sub(in.last) >= pasteSilence
			in.last = at
			if silent && (e.Key == "ctrl-c" || e.Key == "esc") {
				return append(in.paste(false, at), e)
			}
			in.pasted.WriteString(typed(e.Key))
			return nil
		}
		if e.Key == "" {
			return nil
		}
	case *tcell.EventMouse:
		if !in.mouse(ev, &e) {
			return nil
		}
	case *tcell.EventResize:
		e.Kind = Resize
		e.X, e.Y = ev.Size()
	case *tcell.EventFocus:
		e.Kind, e.Focused = Focus, ev.Focused
	case *tcell.EventError:
		e.Kind = Gone
	default:
		return nil
	}
	return []Event{e}
}

// paste begins a paste, or returns the one that ends.
func (in *input) paste(start bool, at time.Time) []Event {
	in.last = at
	if start {
		if in.pasted == nil {
			in.pasted = &strings.Builder{}
		}
		return nil
	}
	if in.pasted == nil {
		return nil
	}
	e := Event{Kind: Paste, Text: in.pasted.String(), At: at}
	in.pasted = nil
	return []Event{e}
}

// mouse fills in an event of the mouse, and returns false for one that means nothing.
func (in *input) mouse(ev *tcell.EventMouse, e *Event) bool {
	e.Kind = Mouse
	e.X, e.Y = ev.Position()
	switch b := ev.Buttons(); {
	case b&tcell.WheelUp != 0:
		e.Key = "wheel-up"
	case b&tcell.WheelDown != 0:
		e.Key = "wheel-down"
	case b&tcell.Button1 != 0 && in.down:
		e.Key = "drag"
	case b&tcell.Button1 != 0:
		e.Key, in.down = "left", true
	case b&tcell.Button2 != 0:
		e.Key = "right"
	default:
		if !in.down {
			return false
		}
		e.Key, in.down = "release", false
	}
	return true
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
