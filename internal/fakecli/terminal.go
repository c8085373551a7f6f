package fakecli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// look describes a CLI's screen.
type look struct {
	prompt string // before what the person has said
	// bottom are the lines below the conversation: status, dialog, input box.
	bottom func(s *terminal) []string
	// long returns how the input box shows a paste of several lines; nil: unchanged.
	long func(lines int) string
}

// terminal is the screen and the keyboard of a fake CLI.
type terminal struct {
	look
	in   *os.File
	out  io.Writer
	line func(text string) // a line was entered
	esc  func()            // Escape, with no dialog open

	mu     sync.Mutex
	said   []string
	input  string
	busy   bool
	dialog []string
	answer chan string // of the open dialog
}

// newTerminal takes the terminal over: raw, with bracketed paste.
func newTerminal(l look) (*terminal, error) {
	if _, err := term.MakeRaw(int(os.Stdin.Fd())); err != nil {
		return nil, fmt.Errorf("take the terminal: %w", err)
	}
	t := &terminal{look: l, in: os.Stdin, out: os.Stdout}
	fmt.Fprint(t.out, "\x1b[?2004h")
	t.draw()
	return t, nil
}

// say adds to the conversation on the screen.
func (t *terminal) say(prefix, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, l := range strings.Split(text, "\n") {
		if i > 0 {
			prefix = strings.Repeat(" ", utf8.RuneCountInString(prefix))
		}
		t.said = append(t.said, prefix+l)
	}
	t.drawLocked()
}

// working shows whether a turn is running.
func (t *terminal) working(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = on
	t.drawLocked()
}

// ask shows a dialog in the place of the input box until a key of keys is pressed or
// ctx ends; then the answer is "".
func (t *terminal) ask(ctx context.Context, dialog []string) string {
	answer := make(chan string, 1)
	t.mu.Lock()
	t.dialog, t.answer = dialog, answer
	t.drawLocked()
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.dialog, t.answer = nil, nil
		t.drawLocked()
		t.mu.Unlock()
	}()
	select {
	case key := <-answer:
		return key
	case <-ctx.Done():
		return ""
	}
}

func (t *terminal) draw() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drawLocked()
}

func (t *terminal) drawLocked() {
	width, height, err := term.GetSize(int(t.in.Fd()))
	if err != nil || width < 10 || height < 5 {
		width, height = 80, 24
	}
	bottom := t.dialog
	if len(bottom) == 0 {
		bottom = t.bottom(t)
	}
	lines := t.said
	if room := max(1, height-len(bottom)-1); len(lines) > room {
		lines = lines[len(lines)-room:]
	}
	var b strings.Builder
	b.WriteString("\x1b[2J\x1b[H")
	for i, l := range append(append([]string{}, lines...), bottom...) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		if r := []rune(l); len(r) >= width {
			l = string(r[:width-1])
		}
		b.WriteString(l)
	}
	_, _ = io.WriteString(t.out, b.String()) // a missing terminal ends the reading
}

// read reads keys until the terminal is gone.
func (t *terminal) read() {
	buf := make([]byte, 64*1024)
	var pasting bool
	var pasted strings.Builder
	var whole string // the text of a displayed placeholder
	for {
		n, err := t.in.Read(buf)
		if err != nil {
			return
		}
		text := string(buf[:n])
		for text != "" {
			if pasting {
				before, after, end := strings.Cut(text, "\x1b[201~")
				pasted.WriteString(before)
				text = after
				if end {
					pasting = false
					paste := strings.ReplaceAll(pasted.String(), "\r", "\n")
					pasted.Reset()
					shown := paste
					if lines := strings.Count(paste, "\n") + 1; t.long != nil && lines > 3 {
						whole, shown = paste, t.long(lines)
					}
					t.typed(func(s string) string { return s + shown })
				}
				continue
			}
			if rest, ok := strings.CutPrefix(text, "\x1b[200~"); ok {
				pasting, text = true, rest
				continue
			}
			r, size := utf8.DecodeRuneInString(text)
			key := text[:size]
			text = text[size:]
			switch {
			case r == 0x1b && (text == "" || text[0] == 0x1b): // alone, however late it is read
				t.escape()
			case r == 0x1b: // a sequence that means nothing here
				i := strings.IndexFunc(text, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '~' })
				text = text[i+1:]
			case r == 3 || r == 4: // Ctrl-C and Ctrl-D clear the line
				t.typed(func(string) string { return "" })
			case r == '\r':
				t.enter(whole)
				whole = ""
			case r == 0x7f:
				t.typed(func(s string) string { return s[:max(0, len(s)-1)] })
			default:
				t.press(key)
			}
		}
	}
}

func (t *terminal) typed(change func(string) string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.input = change(t.input)
	t.drawLocked()
}

// press is a key: an answer to the dialog, or text.
func (t *terminal) press(key string) {
	t.mu.Lock()
	a := t.answer
	t.mu.Unlock()
	if a == nil {
		t.typed(func(s string) string { return s + key })
		return
	}
	select {
	case a <- key:
	default: // answered already
	}
}

func (t *terminal) escape() {
	t.mu.Lock()
	open := t.answer != nil
	t.mu.Unlock()
	switch {
	case open:
		t.press("esc")
	case t.esc != nil:
		t.esc()
	}
}

func (t *terminal) enter(whole string) {
	t.mu.Lock()
	text, open := t.input, t.answer != nil
	if !open {
		t.input = ""
		t.drawLocked()
	}
	t.mu.Unlock()
	switch {
	case open:
		t.press("1")
	case whole != "":
		t.line(whole)
	case strings.TrimSpace(text) != "":
		t.line(text)
	}
}
