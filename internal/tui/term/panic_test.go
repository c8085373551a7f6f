package term

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fragile is a line of which one read or write panics.
type fragile struct {
	sink
	breaksRead, breaksWrite atomic.Bool
}

func (f *fragile) Write(b []byte) (int, error) {
	if f.breaksWrite.Swap(false) {
		panic("boom")
	}
	return f.sink.Write(b)
}

func (f *fragile) Read(b []byte) (int, error) {
	if f.breaksRead.Load() {
		panic("boom")
	}
	return f.sink.Read(b)
}

// TestPanics checks that a panic of a goroutine of the terminal is reported with its stack, and that the
// terminal is still restored.
func TestPanics(t *testing.T) {
	for _, c := range []struct {
		name, stack string
		painted     func(int, time.Time)
		tmux        func(context.Context, string) (string, error)
		begin       func(*Terminal, *fragile)
	}{
		{"painter", "paint", func(int, time.Time) { panic("boom") }, nil, func(x *Terminal, _ *fragile) { x.Draw(Frame{ID: 1, Lines: []string{"x"}}) }},
		{"write", "paint", nil, nil, func(x *Terminal, l *fragile) {
			l.breaksWrite.Store(true)
			x.Draw(Frame{ID: 1, Lines: []string{"x"}})
		}},
		{"reader", "receive", nil, nil, func(_ *Terminal, l *fragile) {
			l.breaksRead.Store(true)
			l.typed <- []byte("x")
		}},
		{"alert", "Alert", nil, func(context.Context, string) (string, error) { panic("boom") }, func(x *Terminal, _ *fragile) { x.Alert("a", "b") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &fragile{}
			type crash struct {
				what  any
				stack string
			}
			crashed := make(chan crash, 8)
			x, err := open(l, Options{Tmux: c.tmux, Failed: func(what any, stack []byte) { crashed <- crash{what, string(stack)} }}, c.painted)
			if err != nil {
				t.Fatal(err)
			}
			c.begin(x, l)
			got := <-crashed
			if got.what == nil || !strings.Contains(got.stack, c.stack) {
				t.Errorf("reported %v with the stack\n%s", got.what, got.stack)
			}
			x.Close()
			l.mu.Lock()
			defer l.mu.Unlock()
			if last := l.writes[len(l.writes)-1]; !l.stopped || !strings.Contains(last, "\x1b[?1049l") {
				t.Errorf("restored %v, by %q", l.stopped, last)
			}
		})
	}
}
