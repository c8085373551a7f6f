package main

import (
	"testing"
	"time"
)

// TestAttendPause: a team without a supervisor is tried more and more rarely, and soon again after one that stood.
func TestAttendPause(t *testing.T) {
	t.Parallel()
	var last time.Duration
	for _, want := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		if last = attendPause(last, 5*time.Second); last != want*time.Second {
			t.Errorf("a pause of %v, not %v s", last, int64(want))
		}
	}
	if again := attendPause(last, time.Hour); again != attendedAgain {
		t.Errorf("a pause of %v after an hour with a supervisor", again)
	}
}
