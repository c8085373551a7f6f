package uniproc

import (
	"runtime"
	"testing"
)

// TestRelease checks that a program starts on one processor, and gets those of the runtime by Release.
func TestRelease(t *testing.T) {
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("starts on %d processors", n)
	}
	for range 2 {
		Release()
		if n := runtime.GOMAXPROCS(0); n != before {
			t.Errorf("runs on %d processors of %d", n, before)
		}
	}
}
