package term

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// TestPause checks that a terminal that was lent is not taken for one that is gone, whichever of its
// goroutines ends first.
func TestPause(t *testing.T) {
	t.Parallel()
	term, err := open(&sink{}, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ends := make(chan int)
	go func() {
		n := 0
		for e := range term.Events { // those of signals, which other tests send, are others
			if e.Kind == Gone {
				n++
			}
		}
		ends <- n
	}()
	for range 2000 {
		if err := term.Pause(func() {}); err != nil {
			t.Error(err)
		}
	}
	term.Close()
	if n := <-ends; n > 0 {
		t.Errorf("the terminal was gone %d times", n)
	}
}

// TestCloseIsNoEnd checks that a terminal that is closed is not taken for one that is gone.
func TestCloseIsNoEnd(t *testing.T) {
	t.Parallel()
	for range 500 {
		term, err := open(&sink{}, Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		term.Close()
		for e := range term.Events {
			if e.Kind == Gone {
				t.Fatal("the terminal was gone")
			}
		}
	}
}

// TestContinuedWithFullQueue checks that a process that was continued is told so although its queue of
// events is full and the size has changed: who takes the events waits for that.
func TestContinuedWithFullQueue(t *testing.T) {
	t.Parallel()
	term := &Terminal{line: &sink{}, events: make(chan Event, 1), continued: make(chan struct{}, 1), quit: make(chan struct{}), canvas: newCanvas(false)}
	term.events <- Event{Key: "a"}
	continues, sizes := make(chan os.Signal), make(chan os.Signal)
	term.watcher.Go(func() { term.watch(continues, sizes) })
	defer term.watcher.Wait()
	defer close(term.quit)
	limit := time.After(time.Minute)
	for range 2 {
		select {
		case sizes <- syscall.SIGWINCH:
		case <-limit:
			t.Fatal("a change of the size is not taken")
		}
	}
	select {
	case continues <- syscall.SIGCONT:
	case <-limit:
		t.Fatal("the signal is not taken")
	}
	<-term.continued
	if e := <-term.events; e.Key != "a" {
		t.Errorf("%+v before what was typed", e)
	}
	if e := <-term.events; e.Kind != Resize {
		t.Errorf("%+v instead of the new size", e)
	}
}
