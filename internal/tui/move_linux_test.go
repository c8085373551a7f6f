package tui

import (
	"bytes"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/openpty"
	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
)

// TestMoveBytes checks that a move of the selection between rows that begin with a coloured sign writes the words of
// both in 200 bytes, with what changes beside the list.
func TestMoveBytes(t *testing.T) {
	t.Parallel()
	master, tty, err := openpty.Open()
	if err != nil {
		t.Skipf("no pty: %v", err)
	}
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 200}); err != nil {
		t.Fatal(err)
	}
	screen, err := term.Open(term.Options{Path: tty.Name(), Color: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1<<16)
	frame := func(m *model) (written []byte) {
		m.refresh()
		screen.Draw(term.Frame{Lines: m.draw().lines})
		for !bytes.HasSuffix(written, []byte("\x1b[?2026l")) {
			n, err := master.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			written = append(written, buf[:n]...)
		}
		return written
	}
	s := crowd(50)
	s.Tasks = slices.DeleteFunc(s.Tasks, func(x view.Task) bool { return len(x.ID) < 3 })
	m := shownOf(s, 200, 50)
	m.at, m.style = inTasks, Style{On: true}
	m.refresh()
	m.move(-len(s.Tasks))
	frame(m)
	var sizes []int
	for range len(s.Tasks) - 1 {
		m.move(1)
		w := frame(m)
		if !bytes.Contains(w, []byte("worker")) || !bytes.Contains(w, []byte("release notes")) {
			t.Errorf("the words of the rows are not in %q", w)
		}
		sizes = append(sizes, len(w))
	}
	slices.Sort(sizes)
	if n := sizes[len(sizes)/2]; n > 200 {
		t.Errorf("a move writes %d bytes: %v", n, sizes)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for err := error(nil); err == nil; _, err = master.Read(buf) {
		}
	}()
	screen.Close()
	_ = tty.Close()
	<-done
	_ = master.Close()
}
