package run

import (
	"testing"
	"time"
)

// TestOutcomeIsItsOwn checks that a command that has ended is not taken for one that must be ended,
// although its limit or its task's end is due as well, as in a process that was stopped.
func TestOutcomeIsItsOwn(t *testing.T) {
	t.Parallel()
	for range 50 {
		exit, late, cut := make(chan error, 1), make(chan time.Time, 1), make(chan struct{})
		exit <- nil
		late <- time.Now()
		close(cut)
		if end, byItself := outcome(exit, late, cut); !byItself || !end.OK() {
			t.Fatalf("%+v, %v", end, byItself)
		}
	}
}
