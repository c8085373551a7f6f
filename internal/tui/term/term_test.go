package term

import (
	"context"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("TERM", "xterm-256color")
	if os.Getenv(suspendProgram) != "" {
		os.Exit(suspended())
	}
	goleak.VerifyTestMain(m)
}

// sink is a line that takes its output, and counts what is written after its end.
type sink struct {
	mu      sync.Mutex
	drained chan struct{}
	typed   chan []byte
	writes  []string
	cols    int
	rows    int
	stopped bool
	late    int // writes after it was restored
}

func (l *sink) Start() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drained, l.stopped = make(chan struct{}), false
	if l.typed == nil {
		l.typed = make(chan []byte, 1)
	}
	if l.cols == 0 {
		l.cols, l.rows = 200, 200
	}
	return nil
}

func (l *sink) Stop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	return nil
}

func (l *sink) Drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.drained:
	default:
		close(l.drained)
	}
}

func (l *sink) Read(b []byte) (int, error) {
	l.mu.Lock()
	drained := l.drained
	l.mu.Unlock()
	select {
	case <-drained:
		return 0, io.EOF
	case typed := <-l.typed:
		return copy(b, typed), nil
	}
}

func (l *sink) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		l.late++
	}
	l.writes = append(l.writes, string(b))
	return len(b), nil
}

func (l *sink) Size() (cols, rows int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drained == nil { // as a device, it has no size before it is opened
		return 0, 0, os.ErrClosed
	}
	return l.cols, l.rows, nil
}

// taken returns the writes since the last call.
func (l *sink) taken() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.writes
	l.writes = nil
	return w
}

// TestCloseAmidPainting ends the screen while frames arrive; the race detector reports if they are still being
// drawn.
func TestCloseAmidPainting(t *testing.T) {
	for round := range 30 {
		l := &sink{}
		term, err := open(l, Options{Color: true}, nil)
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
		<-time.After(time.Duration(round%5) * time.Millisecond)
		term.Close()
		close(quit)
		drawing.Wait()
		if l.late > 0 {
			t.Fatalf("%d writes to a terminal that was restored", l.late)
		}
	}
}

func TestSequence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outer
		want string
	}{
		{outer{names: "xterm-256color "}, "\a"},
		{outer{names: "xterm-kitty "}, "\x1b]99;i=teamctl:d=0;a,b\x1b\\\x1b]99;i=teamctl:p=body;c ]0;x d\x1b\\"},
		{outer{names: "xterm-256color iTerm.app"}, "\x1b]9;a,b: c ]0;x d\x1b\\"},
		{outer{names: "xterm-256color WezTerm"}, "\x1b]777;notify;a,b;c ]0;x d\x1b\\"},
		{outer{names: "foot "}, "\x1b]777;notify;a,b;c ]0;x d\x1b\\"},
		{outer{tmux: true, names: "foot(1.16.2) foot"}, "\a"},
		{outer{tmux: true, passes: true, names: "ghostty 1.0 xterm-ghostty"}, "\x1bPtmux;\x1b\x1b]777;notify;a,b;c ]0;x d\x1b\x1b\\\x1b\\"},
		{outer{tmux: true, passes: true, names: "XTerm(370) xterm"}, "\a"},
	} {
		if got := sequence(c.outer, "a;b", "c\x1b]0;x\ad"); got != c.want {
			t.Errorf("%+v: %q; want %q", c.outer, got, c.want)
		}
	}
	if s := sequence(outer{names: "foot"}, "a", strings.Repeat("x", 10_000)); len(s) > 300 {
		t.Errorf("%d bytes", len(s))
	}
}

// TestAlertInTmux checks the choice of the alert by what tmux reports of itself and of the terminal around it.
func TestAlertInTmux(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]outer{
		"all\t0\tkitty(0.31)\txterm-kitty\n":   {tmux: true, passes: true, names: "kitty(0.31) xterm-kitty"},
		"on\t1\tkitty(0.31)\txterm-kitty\n":    {tmux: true, passes: true, names: "kitty(0.31) xterm-kitty"},
		"1\t1\tkitty(0.31)\txterm-kitty\n":     {tmux: true, passes: true, names: "kitty(0.31) xterm-kitty"},
		"0\t1\tkitty(0.31)\txterm-kitty\n":     {tmux: true, names: "kitty(0.31) xterm-kitty"},
		"on\t0\tkitty(0.31)\txterm-kitty\n":    {tmux: true, names: "kitty(0.31) xterm-kitty"}, // it lets pass what a visible pane writes
		"off\t1\tkitty(0.31)\txterm-kitty\n":   {tmux: true, names: "kitty(0.31) xterm-kitty"},
		"\t1\t\txterm-kitty\n":                 {tmux: true, passes: true, names: " xterm-kitty"}, // before 3.3
		"no server running on /tmp/tmux-0/x\n": {tmux: true},
	} {
		term := &Terminal{tmux: func(_ context.Context, format string) (string, error) {
			if format != AskTmux {
				t.Errorf("asked for %q", format)
			}
			return answer, nil
		}}
		if got := term.outer(t.Context()); got != want {
			t.Errorf("%q: %+v; want %+v", answer, got, want)
		}
	}
}

// TestAlertAndClose checks that an alert is written whole or not at all, and that the end of the screen does not
// wait for tmux.
func TestAlertAndClose(t *testing.T) {
	l := &sink{}
	asked := make(chan struct{})
	term, err := open(l, Options{Tmux: func(ctx context.Context, _ string) (string, error) {
		close(asked)
		<-ctx.Done()
		return "", ctx.Err()
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	term.Alert("teamctl demo", "ann: permission")
	<-asked
	term.Close()
	if l.late > 0 {
		t.Errorf("%d writes to a terminal that was restored", l.late)
	}
}
