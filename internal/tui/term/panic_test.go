package term

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gdamore/tcell/v3"
)

// fragile is a line of which one write panics.
type fragile struct {
	line
	breaks atomic.Bool
	last   atomic.Value // what was written last
}

func (f *fragile) Write(b []byte) (int, error) {
	if f.breaks.Swap(false) {
		panic("boom")
	}
	f.last.Store(string(b))
	return f.line.Write(b)
}

// TestPanicInTheLibrary checks that the terminal is restored though the library's screen can no longer be
// ended, since its lock is held. The goroutines that wait for it stay: another process has them.
func TestPanicInTheLibrary(t *testing.T) {
	const env = "TERM_TEST_PANIC"
	if os.Getenv(env) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPanicInTheLibrary$")
		c.Env = append(os.Environ(), env+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	l := &fragile{}
	crashed := make(chan any, 1)
	x, err := open(l, nil, Options{Failed: func(what any, _ []byte) { crashed <- what }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.breaks.Store(true)
	x.Draw(Frame{ID: 1, Lines: []string{"x"}})
	<-crashed
	x.Close()
	l.mu.Lock()
	stopped := l.stopped
	l.mu.Unlock()
	if last, _ := l.last.Load().(string); !stopped || !strings.Contains(last, "\x1b[?1049l") {
		fmt.Printf("restored %v, by %q\n", stopped, last)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestPanics checks that a panic of a goroutine of the terminal is reported with its stack, and that the
// terminal is still restored.
func TestPanics(t *testing.T) {
	for _, c := range []struct {
		name, stack string
		painted     func(int, time.Time)
		tmux        func(context.Context, string) (string, error)
		begin       func(*Terminal)
	}{
		{"painter", "paint", func(int, time.Time) { panic("boom") }, nil, func(x *Terminal) { x.Draw(Frame{ID: 1, Lines: []string{"x"}}) }},
		{"reader", "read", nil, nil, func(x *Terminal) { x.screen.EventQ() <- (*tcell.EventMouse)(nil) }},
		{"alert", "Alert", nil, func(context.Context, string) (string, error) { panic("boom") }, func(x *Terminal) { x.Alert("a", "b") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &line{}
			type crash struct {
				what  any
				stack string
			}
			crashed := make(chan crash, 8)
			x, err := open(l, nil, Options{Tmux: c.tmux, Failed: func(what any, stack []byte) { crashed <- crash{what, string(stack)} }}, c.painted)
			if err != nil {
				t.Fatal(err)
			}
			c.begin(x)
			got := <-crashed
			if got.what == nil || !strings.Contains(got.stack, c.stack) {
				t.Errorf("reported %v with the stack\n%s", got.what, got.stack)
			}
			x.Close()
			l.mu.Lock()
			defer l.mu.Unlock()
			if !l.stopped {
				t.Error("the terminal is not restored")
			}
		})
	}
}
