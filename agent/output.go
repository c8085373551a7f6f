package agent

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// output is the worker's screen. A screen that is gone must not end a command, so
// its errors are swallowed here. It is safe for concurrent use.
type output struct {
	mu  sync.Mutex
	w   io.Writer
	mid bool // the cursor is not at the beginning of a line
}

func newOutput(w io.Writer) *output { return &output{w: w} }

// Write passes a command's bytes on as they are.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(p)
	return len(p), nil
}

// line writes one line of the worker's own, on a line of its own.
func (o *output) line(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := clean(fmt.Sprintf(format, args...)) + "\n"
	if o.mid {
		s = "\n" + s
	}
	o.put([]byte(s))
}

func (o *output) put(p []byte) {
	if len(p) == 0 {
		return
	}
	_, _ = o.w.Write(p)
	o.mid = p[len(p)-1] != '\n'
}

const (
	tailLines = 40
	tailBytes = 8 << 10
)

// tail keeps the end of a command's output.
type tail struct {
	buf []byte
	cut bool // something before buf was dropped
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	// Twice the limit before it is cut, so that it is not copied with every write.
	if len(t.buf) > 4*tailBytes {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-2*tailBytes:]...)
		t.cut = true
	}
	return len(p), nil
}

// text is the last lines, readable: at most tailLines lines and tailBytes bytes,
// whole lines where that is possible.
func (t *tail) text() string {
	s := strings.TrimRight(clean(string(t.buf)), "\n ")
	if t.cut {
		_, after, ok := strings.Cut(s, "\n")
		if ok {
			s = after
		}
	}
	lines := strings.Split(s, "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	for len(lines) > 1 && len(strings.Join(lines, "\n")) > tailBytes {
		lines = lines[1:]
	}
	s = strings.Join(lines, "\n")
	if len(s) > tailBytes {
		s = s[len(s)-tailBytes:]
		for len(s) > 0 && !utf8.RuneStart(s[0]) {
			s = s[1:]
		}
	}
	return s
}

// lastLine is the last line that is not empty, or "".
func lastLine(s string) string {
	lines := strings.Split(s, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if l := strings.TrimSpace(lines[i]); l != "" {
			return l
		}
	}
	return ""
}

// clean makes terminal output plain text: valid UTF-8, no escape sequences, no
// control characters but newline and tab, of a line that was redrawn with
// carriage returns only the last state. What goes into the ledger and from there
// onto other screens must not be able to drive them.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "�")
	b := make([]byte, 0, len(s))
	line := 0 // where the current line begins in b
	rs := []rune(s)
	for i := 0; i < len(rs); i++ {
		switch r := rs[i]; {
		case r == '\n':
			b = append(b, '\n')
			line = len(b)
		case r == '\r':
			if i+1 < len(rs) && rs[i+1] != '\n' && rs[i+1] != '\r' {
				b = b[:line]
			}
		case r == 0x1b:
			i = skipEscape(rs, i)
		case r != '\t' && r < 0x20 || r >= 0x7f && r < 0xa0:
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b)
}

// skipEscape returns the index of the last rune of the sequence that begins at i.
func skipEscape(rs []rune, i int) int {
	if i+1 >= len(rs) {
		return i
	}
	switch rs[i+1] {
	case '[': // CSI: up to a final byte
		for j := i + 2; j < len(rs); j++ {
			if rs[j] >= 0x40 && rs[j] <= 0x7e {
				return j
			}
			if rs[j] < 0x20 || rs[j] > 0x7e {
				return j - 1
			}
		}
		return len(rs) - 1
	case ']', 'P', 'X', '^', '_': // OSC and other strings: up to BEL or ST
		for j := i + 2; j < len(rs); j++ {
			if rs[j] == 0x07 {
				return j
			}
			if rs[j] == 0x1b && j+1 < len(rs) && rs[j+1] == '\\' {
				return j + 1
			}
			if rs[j] == '\n' {
				return j - 1 // never closed
			}
		}
		return len(rs) - 1
	case '(', ')', '*', '+', '#', ' ':
		return min(i+2, len(rs)-1)
	default:
		return i + 1
	}
}

// cut shortens s to n characters.
func cut(s string, n int) string {
	rs := []rune(s)
	if len(rs) <= n {
		return s
	}
	return strings.TrimRight(string(rs[:n-1]), " ") + "…"
}
