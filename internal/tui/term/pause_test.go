package term

import "testing"

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
