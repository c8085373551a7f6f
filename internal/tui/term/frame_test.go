package term

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sinkTerminal opens a terminal of 40 columns and 5 rows; frame draws one and returns its writes.
func sinkTerminal(t *testing.T) (l *sink, term *Terminal, frame func(Frame) []string) {
	t.Helper()
	l = &sink{cols: 40, rows: 5}
	painted := make(chan int)
	term, err := open(l, Options{Color: true}, func(id int, _ time.Time) { painted <- id })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(term.Close)
	frame = func(f Frame) []string {
		term.Draw(f)
		<-painted
		return l.taken()
	}
	frame(Frame{})
	return l, term, frame
}

// TestFrameIsOneWrite checks that a frame is one write of only what it changes, and one that changes nothing is
// none: each write wakes the terminal, and this process when it has been read.
func TestFrameIsOneWrite(t *testing.T) {
	_, _, frame := sinkTerminal(t)
	be := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q; want %q", what, got, want)
		}
	}
	const begin, end = "\x1b[?2026h", "\x1b[?2026l"
	two := Frame{Lines: []string{"one", "two"}}
	if got := frame(two); len(got) != 1 || !strings.Contains(got[0], "two") {
		t.Errorf("the first frame: %q", got)
	}
	be("the same", frame(two))
	be("a letter", frame(Frame{Lines: []string{"one", "twe"}}), begin+"\x1b[2;3He"+end)
	be("a line less", frame(Frame{Lines: []string{"one"}}), begin+"\x1b[2;1H\x1b[K"+end)
	cursor := Frame{Lines: []string{"one"}, Cursor: true, X: 1}
	be("a cursor", frame(cursor), begin+"\x1b[1;2H\x1b[?25h"+end)
	be("the same cursor", frame(cursor))
	be("without it", frame(Frame{Lines: []string{"ene"}}), begin+"\x1b[?25l\x1b[He"+end)
	be("and again", frame(Frame{Lines: []string{"one"}}), begin+"\x1b[Ho"+end)
}

// TestFrameAfterLoss checks that a frame equal to the last one is drawn where the terminal may show another: after a
// pause, and after two changes of the size that give the same one.
func TestFrameAfterLoss(t *testing.T) {
	l, term, frame := sinkTerminal(t)
	f := Frame{Lines: []string{"one", "two", "three"}}
	frame(f)
	if err := term.Pause(func() {}); err != nil {
		t.Fatal(err)
	}
	l.taken()
	if got := strings.Join(frame(f), ""); !strings.Contains(got, "three") {
		t.Errorf("after a pause: %q", got)
	}
	for _, rows := range []int{2, 5} {
		l.mu.Lock()
		l.rows = rows
		l.mu.Unlock()
		if err := unix.Kill(unix.Getpid(), unix.SIGWINCH); err != nil {
			t.Fatal(err)
		}
		for e := range term.Events {
			if e.Kind == Resize && e.Y == rows {
				break
			}
		}
	}
	l.taken()
	if got := strings.Join(frame(f), ""); !strings.Contains(got, "three") {
		t.Errorf("after two changes of the size: %q", got)
	}
}

// TestNoStrings checks that terminals which would show them get neither title nor clipboard.
func TestNoStrings(t *testing.T) {
	for name, want := range map[string]bool{"xterm-256color": true, "tmux-256color": true, "linux": false, "vt100": false, "vt220": false} {
		t.Setenv("TERM", name)
		if got := len(titled("x")) > 0 && len(copied("x")) > 0; got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
