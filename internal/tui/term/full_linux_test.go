package term

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/openpty"
)

// TestFullTerminal checks that a terminal that takes no output delays neither the program nor its input, and
// that once it takes output again, it gets the rest of one frame and the newest one, not those between.
func TestFullTerminal(t *testing.T) {
	t.Parallel()
	master, tty, err := openpty.Open()
	if err != nil {
		t.Skipf("no pty: %v", err)
	}
	defer func() {
		_ = tty.Close()
		_ = master.Close()
	}()
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 200}); err != nil {
		t.Fatal(err)
	}
	const frames = 300
	painted := make(chan int, frames+1)
	term, err := Open(Options{Path: tty.Name()}, func(id int, _ time.Time) { painted <- id })
	if err != nil {
		t.Fatal(err)
	}
	const patience = 5 * time.Minute
	within := func(what string, f func()) {
		t.Helper()
		done := make(chan struct{})
		go func() { defer close(done); f() }()
		select {
		case <-done:
		case <-time.After(patience):
			panic("waited too long for " + what) // the end of the test would wait as well
		}
	}
	filled := 0
	if err := unix.SetNonblock(int(tty.Fd()), true); err != nil { // the Terminal has opened its own
		t.Fatal(err)
	}
	for n, err := 0, error(nil); err == nil; filled += max(0, n) {
		n, err = unix.Write(int(tty.Fd()), make([]byte, 1000))
	}
	page := func(i int) Frame {
		lines := make([]string, 50)
		for y := range lines {
			lines[y] = strings.Repeat(string(rune('a'+(i+y)%26)), 190)
		}
		lines[49] = "......"
		if i == frames-1 {
			lines[49] = "newest" // written as a whole, whichever frame was there
		}
		return Frame{ID: i, Lines: lines}
	}
	dev, ok := term.line.(*device)
	if !ok {
		t.Fatalf("%T", term.line)
	}
	within("the program", func() {
		for term.Draw(page(0)); dev.writing.TryLock(); dev.writing.Unlock() {
			<-time.After(time.Millisecond) // until the write of a frame is blocked
		}
		for i := range frames {
			term.Draw(page(i))
			term.Title(fmt.Sprintf("title %d.", i))
			term.Copy(fmt.Sprintf("copied %d.", i))
			if cols, rows := term.Size(); cols != 200 || rows != 50 {
				t.Errorf("%dx%d", cols, rows)
			}
		}
		term.Redraw()
		for range 200 { // each may have the whole screen written
			if err := unix.Kill(unix.Getpid(), unix.SIGWINCH); err != nil {
				t.Error(err)
			}
			<-time.After(100 * time.Microsecond) // else the system makes them one
		}
		if _, err := master.Write([]byte{3}); err != nil {
			t.Error(err)
		}
		for e := range term.Events {
			if e.Kind == Key {
				if e.Key != "ctrl-c" {
					t.Errorf("key %q", e.Key)
				}
				return
			}
		}
	})
	if n := len(painted); n > 2 {
		t.Errorf("%d frames are in a terminal that takes none", n)
	}
	var out bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&out, master)
	}()
	within("the newest frame", func() {
		for <-painted != frames-1 {
		}
	})
	within("the newest title", func() { // which is written before or after the frame
		for len(term.titles) > 0 {
			<-time.After(time.Millisecond)
		}
	})
	term.Close()
	if err := tty.Close(); err != nil {
		t.Error(err)
	}
	<-read
	one := len(strings.Join(page(0).Lines, ""))
	// The frame that was blocked, the newest, the whole screen again and for a new size; and some KB of modes.
	got := out.String()
	if strings.LastIndex(got, "newest") < strings.LastIndex(got, "......") || !strings.Contains(got, "newest") || len(got)-filled > 7*one {
		t.Errorf("%d bytes; a frame has %d:\n%q", len(got)-filled, one, got[max(0, len(got)-500):])
	}
	if strings.Count(got, "title ") > 3 || !strings.Contains(got, fmt.Sprintf("title %d.", frames-1)) {
		t.Errorf("%d titles, the newest among them: %v", strings.Count(got, "title "), strings.Contains(got, fmt.Sprintf("title %d.", frames-1)))
	}
}
