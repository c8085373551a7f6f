package term

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

const (
	// pasteSilence is how long nothing comes in a paste before ctrl-c or esc ends it: its end was lost.
	pasteSilence = time.Second
	// escapeSilence is how long nothing comes after the beginning of a sequence before it is taken for
	// whole: Esc is a key, too.
	escapeSilence = 50 * time.Millisecond
	// longestSequence is the number of bytes of a sequence that is not waited for any longer.
	longestSequence = 4096
)

// receive reads the terminal to the end of it, or until done is closed.
func (t *Terminal) receive(got chan<- []byte, done <-chan struct{}) {
	defer t.caught()
	defer close(got)
	for {
		b := make([]byte, 1024)
		n, err := t.line.Read(b)
		if n > 0 {
			select {
			case got <- b[:n]:
			case <-done:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// read passes on what comes from the terminal, to the end of it, or until done is closed.
func (t *Terminal) read(got <-chan []byte, done <-chan struct{}) {
	defer t.caught()
	pass := func(e Event) {
		select {
		case t.events <- e:
		case <-done:
		case <-t.quit:
		}
	}
	var in input
	silent := time.NewTimer(escapeSilence)
	silent.Stop()
	for {
		var read []byte
		ok := true
		select {
		case <-done:
			return
		case <-t.quit:
			return
		case read, ok = <-got:
		case <-silent.C:
		}
		now := time.Now()
		for _, e := range in.events(read, now) {
			pass(e)
		}
		if !ok {
			select {
			case <-done: // which ends the receiver, too
			case <-t.quit:
			default:
				pass(Event{Kind: Gone, At: now})
			}
			return
		}
		if len(in.rest) > 0 {
			silent.Reset(escapeSilence)
		} else {
			silent.Stop()
		}
	}
}

// input decodes what a terminal sends (xterm, "Control Sequences").
type input struct {
	rest   []byte           // beginning of a sequence or character
	pasted *strings.Builder // nil outside of a paste
	last   time.Time        // of the last key in a paste
	down   bool             // the left button
}

// events returns what was read means, together with what was read before. Of nothing, the rest is
// taken for whole.
func (in *input) events(read []byte, at time.Time) (all []Event) {
	b := append(in.rest, read...)
	for len(b) > 0 {
		if len(read) > 0 && len(b) < longestSequence && !whole(b) {
			break
		}
		n, some := in.one(b, at)
		all = append(all, some...)
		b = b[n:]
	}
	in.rest = slices.Clone(b)
	return all
}

// whole reports whether b begins with a whole character or sequence.
func whole(b []byte) bool {
	if b[0] != ansi.ESC {
		return utf8.FullRune(b)
	}
	for len(b) > 1 && b[1] == ansi.ESC { // of which only the last one begins something
		b = b[1:]
	}
	switch {
	case len(b) == 1:
		return false
	case b[1] == 'O' || b[1] == '[' && len(b) == 2:
		return len(b) > 2
	case b[1] == '[' && b[2] == 'M':
		return len(b) >= oldMouse
	case strings.IndexByte("]PX^_", b[1]) >= 0: // a string, which ESC \ ends, or BEL
		end := bytes.IndexAny(b[2:], "\a\x18\x1a\x1b")
		return end >= 0 && (b[2+end] != ansi.ESC || len(b) > 2+end+1)
	}
	_, _, _, state := ansi.DecodeSequence(b, ansi.NormalState, nil)
	return state == ansi.NormalState
}

// oldMouse is the length of ESC [ M and three bytes, a mouse as X10 has it.
const oldMouse = 6

// one returns what the first character or sequence of b means, and its length. A byte that is not
// UTF-8 means nothing: neither is it text, nor does a sequence begin with it.
func (in *input) one(b []byte, at time.Time) (n int, all []Event) {
	if b[0] != ansi.ESC {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			return 1, nil
		}
		return size, in.key(keyOf(r, 0), at)
	}
	next := byte(0)
	if len(b) > 1 {
		next = b[1]
	}
	switch {
	case next == 0, next == ansi.ESC && !bytes.HasPrefix(b[2:], []byte("[")) && !bytes.HasPrefix(b[2:], []byte("O")),
		bytes.HasPrefix(b[1:], []byte("\x1b[200~")), bytes.HasPrefix(b[1:], []byte("\x1b[201~")): // and then a paste
		return 1, in.key("esc", at)
	case next == ansi.ESC: // a sequence with Alt
		_, _, n, _ = ansi.DecodeSequence(b[1:], ansi.NormalState, nil)
		if b[2] == 'O' {
			n = min(3, len(b)-1)
		}
		return 1 + n, nil
	case next == 'O':
		if len(b) == 2 {
			return 2, nil
		}
		return 3, in.key(finalKeys[b[2]], at)
	case bytes.HasPrefix(b, []byte("\x1b[M")) && len(b) >= oldMouse:
		return oldMouse, in.mouse(int(b[3])-32, int(b[4])-32, int(b[5])-32, b[3]&3 == 3, at)
	case strings.IndexByte("[]PX^_", next) < 0: // a character with Alt
		_, size := utf8.DecodeRune(b[1:])
		return 1 + size, nil
	}
	_, _, n, _ = ansi.DecodeSequence(b, ansi.NormalState, nil)
	c, ok := parseControl(string(b[:n]))
	if !ok { // a string, or the beginning of a sequence
		return n, nil
	}
	return n, in.control(c, at)
}

// control returns what a control sequence means.
func (in *input) control(c control, at time.Time) []Event {
	param, final := c.param, c.final
	switch {
	case c.intermediate != 0:
	case c.prefix == '<' && (final == 'M' || final == 'm'):
		return in.mouse(param(0, 0), param(1, 1), param(2, 1), final == 'm', at)
	case c.prefix != 0:
	case final == 'I' || final == 'O':
		return []Event{{Kind: Focus, Focused: final == 'I', At: at}}
	case final == 'u': // a terminal that tells modifiers so
		return in.key(keyOf(rune(param(0, 0)), param(1, 1)-1), at)
	case final == '~' && param(0, 0) == 27:
		return in.key(keyOf(rune(param(2, 0)), param(1, 1)-1), at)
	case final == '~' && param(0, 0) == 200:
		if in.pasted == nil {
			in.pasted = &strings.Builder{}
		}
		in.last = at
	case final == '~' && param(0, 0) == 201:
		return in.pasteEnds(at)
	case (param(1, 1)-1)&^(withShift|withCtrl) != 0:
	case final == '~':
		return in.key(numberedKeys[param(0, 0)], at)
	default:
		return in.key(finalKeys[final], at)
	}
	return nil
}

// key returns the event of a key, which in a paste is text; none for "", a key that the screen does
// not use.
func (in *input) key(key string, at time.Time) []Event {
	e := Event{Kind: Key, Key: key, At: at}
	switch {
	case key == "":
		return nil
	case in.pasted == nil:
		return []Event{e}
	}
	silent := at.Sub(in.last) >= pasteSilence
	in.last = at
	if silent && (key == "ctrl-c" || key == "esc") {
		return append(in.pasteEnds(at), e)
	}
	in.pasted.WriteString(typed(key))
	return nil
}

// pasteEnds returns the paste that ends.
func (in *input) pasteEnds(at time.Time) []Event {
	if in.pasted == nil {
		return nil
	}
	e := Event{Kind: Paste, Text: in.pasted.String(), At: at}
	in.pasted = nil
	return []Event{e}
}

// mouse returns the event of a mouse, whose buttons, column and row are as the terminal tells them.
func (in *input) mouse(buttons, col, row int, released bool, at time.Time) []Event {
	const (
		moves = 1 << 5
		wheel = 1 << 6
		other = 1 << 7
	)
	e := Event{Kind: Mouse, X: col - 1, Y: row - 1, At: at}
	switch which := buttons & 3; {
	case buttons&other != 0:
	case buttons&wheel != 0:
		e.Key = []string{"wheel-up", "wheel-down", "", ""}[which]
	case buttons&moves != 0:
		if in.down && which == 0 {
			e.Key = "drag"
		}
	case released:
		if in.down {
			e.Key, in.down = "release", false
		}
	case which == 0:
		e.Key, in.down = "left", true
	case which == 2:
		e.Key = "right"
	}
	if e.Key == "" {
		return nil
	}
	return []Event{e}
}

// Modifiers, as terminals tell them.
const (
	withShift = 1 << 0
	withCtrl  = 1 << 2
)

// Keys by the last byte of their sequence, and by its number.
var (
	finalKeys = map[byte]string{
		'A': "up", 'B': "down", 'C': "right", 'D': "left", 'H': "home", 'F': "end", 'Z': "backtab", 'M': "enter",
	}
	numberedKeys = map[int]string{1: "home", 3: "delete", 4: "end", 5: "pgup", 6: "pgdn", 7: "home", 8: "end"}
)

// keyOf returns the name of the key that types a character, "" of one that the screen does not use.
func keyOf(r rune, modifiers int) string {
	ctrl, shift := modifiers&withCtrl != 0, modifiers&withShift != 0
	switch {
	case modifiers&^(withShift|withCtrl) != 0:
		return ""
	case r == '\r':
		return "enter"
	case r == ansi.ESC:
		return "esc"
	case r == '\t' && shift:
		return "backtab"
	case r == '\t':
		return "tab"
	case r == '\b' || r == ansi.DEL || r == 'h' && ctrl: // Backspace sends any of them
		return "backspace"
	case r > 0 && r < 27:
		return "ctrl-" + string('a'+r-1)
	case ctrl && r >= 'a' && r <= 'z':
		return "ctrl-" + string(r)
	case r < ' ' || ctrl || unicode.IsControl(r) || !utf8.ValidRune(r):
		return ""
	case r == ' ':
		return "space"
	case shift:
		return string(unicode.ToUpper(r))
	}
	return string(r)
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
	if utf8.RuneCountInString(key) == 1 {
		return key
	}
	return ""
}
