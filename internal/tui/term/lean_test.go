package term

import (
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gdamore/tcell/v3/tty"
)

// kept is a terminal that keeps what is written, and has a size that can be set.
type kept struct {
	line
	mu     sync.Mutex
	writes []string
	size   tty.WindowSize
	resize chan<- bool
	reads  chan struct{} // closed by Drain; nil before the start
}

func (k *kept) Start() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reads = make(chan struct{})
	return nil
}

func (k *kept) Read([]byte) (int, error) {
	k.mu.Lock()
	reads := k.reads
	k.mu.Unlock()
	<-reads
	return 0, io.EOF
}

func (k *kept) Drain() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.reads)
	return nil
}

func (k *kept) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writes = append(k.writes, string(b))
	return len(b), nil
}

func (k *kept) WindowSize() (tty.WindowSize, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.reads == nil { // as a device, it has no size before it is opened
		return tty.WindowSize{}, os.ErrClosed
	}
	return k.size, nil
}

func (k *kept) NotifyResize(resized chan<- bool) { k.resize = resized }

// taken returns the writes since the last call.
func (k *kept) taken() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.writes
	k.writes = nil
	return w
}

func (k *kept) resized(cols, rows int) {
	k.mu.Lock()
	k.size = tty.WindowSize{Width: cols, Height: rows}
	k.mu.Unlock()
	k.resize <- true
}

// keptTerminal opens a terminal; frame draws one and returns its writes.
func keptTerminal(t *testing.T) (k *kept, term *Terminal, frame func(Frame) []string) {
	t.Helper()
	k = &kept{size: tty.WindowSize{Width: 40, Height: 5}}
	painted := make(chan int)
	term, err := open(k, nil, Options{Color: true}, func(id int, _ time.Time) { painted <- id })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(term.Close)
	frame = func(f Frame) []string {
		term.Draw(f)
		<-painted
		return k.taken()
	}
	frame(Frame{})
	if e := <-term.Events; e.Kind != Resize {
		t.Fatalf("%+v; want the size", e)
	}
	return k, term, frame
}

// TestFrameIsOneWrite checks that a frame is one write of only what it changes, and one that changes nothing is
// none: each write wakes the terminal, and this process when it has been read.
func TestFrameIsOneWrite(t *testing.T) {
	t.Parallel()
	_, _, frame := keptTerminal(t)
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
	be("a letter", frame(Frame{Lines: []string{"one", "twe"}}), begin+"\x1b[2;3H\x1b[me"+end)
	be("a line less", frame(Frame{Lines: []string{"one"}}), begin+"\x1b[2;1H\x1b[m   "+end)
	cursor := Frame{Lines: []string{"one"}, Cursor: true, X: 1}
	be("a cursor", frame(cursor), begin+"\x1b[1;2H\x1b[?25h\x1b[0 q"+end)
	be("the same cursor", frame(cursor))
	be("without it", frame(Frame{Lines: []string{"ene"}}), begin+"\x1b[?25l\x1b[1;1H\x1b[me"+end)
	be("and again", frame(Frame{Lines: []string{"one"}}), begin+"\x1b[1;1H\x1b[mo"+end)
}

// TestFrameAfterLoss checks that a frame equal to the last one is drawn where the library's screen has lost it: after
// a pause, and after two changes of the size that give the same one.
func TestFrameAfterLoss(t *testing.T) {
	t.Parallel()
	k, term, frame := keptTerminal(t)
	f := Frame{Lines: []string{"one", "two", "three"}}
	frame(f)
	if err := term.Pause(func() {}); err != nil {
		t.Fatal(err)
	}
	k.taken()
	if got := strings.Join(frame(f), ""); !strings.Contains(got, "three") {
		t.Errorf("after a pause: %q", got)
	}
	for _, size := range [][2]int{{40, 2}, {40, 5}} {
		k.resized(size[0], size[1])
		for e := range term.Events {
			if e.Kind == Resize && e.Y == size[1] {
				break
			}
		}
	}
	k.taken()
	if got := strings.Join(frame(f), ""); !strings.Contains(got, "three") {
		t.Errorf("after two changes of the size: %q", got)
	}
}
