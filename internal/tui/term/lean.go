package term

import (
	"bytes"

	"github.com/gdamore/tcell/v3"
)

// lean is a terminal that gets each frame of the library as one write, without what moves and hides
// a cursor that is hidden, and nothing for a frame that changes nothing. The library hides the
// cursor in each frame at its beginning and its end, and writes the end of the frame separately,
// each of which wakes the terminal once more.
type lean struct {
	tcell.Tty
	frame  []byte // its beginning, until its end is written
	hidden bool   // the cursor is known to be
}

// The library's sequences.
var (
	frameBegins = []byte("\x1b[?2026h")
	frameEnds   = []byte("\x1b[?2026l")
	hides       = []byte("\x1b[?25l")
	cursorMode  = []byte("\x1b[?25")
)

// Write is called under the library's lock.
func (l *lean) Write(b []byte) (int, error) {
	switch {
	case bytes.HasPrefix(b, frameBegins) && l.frame == nil:
		l.frame = append(l.frame, b...)
		return len(b), nil
	case l.frame == nil:
		if bytes.Contains(b, cursorMode) {
			l.hidden = false
		}
		return l.Tty.Write(b)
	}
	f := append(l.frame, b...)
	l.frame = nil
	if !bytes.Equal(b, frameEnds) { // not what the library does
		l.hidden = false
	} else if f = l.thin(f); len(f) == 0 {
		return len(b), nil
	}
	if _, err := l.Tty.Write(f); err != nil {
		l.hidden = false
		return 0, err
	}
	return len(b), nil
}

// thin removes from a frame what has no effect; nothing is left of a frame that has none.
func (l *lean) thin(f []byte) []byte {
	body := f[len(frameBegins) : len(f)-len(frameEnds)]
	rest, ok := afterMove(body)
	if ok = ok && bytes.HasPrefix(rest, hides); !ok {
		l.hidden = false
		return f
	}
	body = rest[len(hides):]
	at := bytes.LastIndex(body, []byte("\x1b[?"))
	ends := at >= 0 && bytes.Equal(body[at:], hides)
	if ends { // it stays hidden
		body = body[:at]
		if at = bytes.LastIndexByte(body, 0x1b); at >= 0 {
			if rest, ok := afterMove(body[at:]); ok && len(rest) == 0 {
				body = body[:at]
			}
		}
	}
	if l.hidden && ends && len(body) == 0 {
		return nil
	}
	out := append([]byte(nil), frameBegins...)
	if !l.hidden {
		out = append(out, hides...)
	}
	l.hidden = ends
	return append(append(out, body...), frameEnds...)
}

// afterMove returns what follows a move of the cursor at the beginning of b.
func afterMove(b []byte) (rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(b, []byte("\x1b["))
	if !ok {
		return b, false
	}
	rest = bytes.TrimLeft(rest, "0123456789;")
	if len(rest) == 0 || rest[0] != 'H' {
		return b, false
	}
	return rest[1:], true
}
