package term

import (
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gdamore/tcell/v3"
	"github.com/gdamore/tcell/v3/tty"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("TERM", "xterm-256color")
	goleak.VerifyTestMain(m)
}

// line is a terminal that nobody looks at.
type line struct {
	mu      sync.Mutex
	drained chan struct{}
	stopped bool
	late    int // writes after it was restored
}

func (l *line) Start() error {
	l.drained = make(chan struct{})
	return nil
}

func (l *line) Stop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	return nil
}

func (l *line) Drain() error {
	close(l.drained)
	return nil
}

func (l *line) Read([]byte) (int, error) {
	<-l.drained
	return 0, io.EOF
}

func (l *line) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		l.late++
	}
	return len(b), nil
}

func (l *line) NotifyResize(chan<- bool) {}
func (l *line) WindowSize() (tty.WindowSize, error) {
	return tty.WindowSize{Width: 200, Height: 200}, nil
}
func (l *line) Close() error { return l.Stop() }

var _ tcell.Tty = (*line)(nil)

// TestCloseAmidPainting: the screen ends while frames come; the race detector sees whether they are
// still drawn then.
func TestCloseAmidPainting(t *testing.T) {
	for round := range 30 {
		l := &line{}
		term, err := open(l, nil, Options{Color: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var drawing sync.WaitGroup
		quit := make(chan struct{})
		drawing.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-quit:
					return
				default:
					term.Draw(Frame{Lines: slices.Repeat([]string{"a long line of frame " + strconv.Itoa(i)}, 200), ID: i})
				}
			}
		})
		time.Sleep(time.Duration(round%5) * time.Millisecond)
		term.Close()
		close(quit)
		drawing.Wait()
		if l.late > 0 {
			t.Fatalf("%d writes to a terminal that was restored", l.late)
		}
	}
}
