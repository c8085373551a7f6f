package agent

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/teamctl/teamctl/internal/plain"
)

// output is the worker's screen. A missing screen must not end a command, so its errors are
// ignored. It is safe for concurrent use.
type output struct {
	mu  sync.Mutex
	w   io.Writer
	mid bool // the cursor is not at the start of a line
}

func newOutput(w io.Writer) *output { return &output{w: w} }

// Write passes a command's output on unchanged.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(p)
	return len(p), nil
}

// line writes one line of the worker's own, on a separate line.
func (o *output) line(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := plain.Text(fmt.Sprintf(format, args...)) + "\n"
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
	// Cut only at twice the size kept, so that not every write copies.
	if len(t.buf) > 4*tailBytes {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-2*tailBytes:]...)
		t.cut = true
	}
	return len(p), nil
}

// text returns the last lines in readable form: at most tailLines lines and tailBytes bytes, in
// whole lines if possible.
func (t *tail) text() string {
	s := strings.TrimRight(plain.Text(string(t.buf)), "\n ")
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

// lastLine returns the last non-empty line, or "".
func lastLine(s string) string {
	lines := strings.Split(s, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if l := strings.TrimSpace(lines[i]); l != "" {
			return l
		}
	}
	return ""
}

// cut shortens s to n characters.
func cut(s string, n int) string {
	rs := []rune(s)
	if len(rs) <= n {
		return s
	}
	return strings.TrimRight(string(rs[:n-1]), " ") + "…"
}
