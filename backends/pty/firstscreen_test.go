package pty

import (
	"bytes"
	"testing"
	"time"
)

// TestFirstScreen checks that a user sees the screen at once regardless of the
// length of the history: as fast as for an agent without history, apart from
// other load on the machine.
func TestFirstScreen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := func(name, last string, mode ...string) time.Duration {
		a := start(t, r, launch(t, r, name, mode...))
		captured(t, a, last)
		fast := time.Hour
		for range 5 {
			begun := time.Now()
			c, f := rawClient(t, a.Pane().Socket, roleView)
			if k, p, err := f.next(); err != nil || k != kindOutput || !bytes.Contains(p, []byte(last)) {
				t.Fatalf("%c, %v", k, err)
			}
			fast = min(fast, time.Since(begun))
			_ = c.Close()
		}
		return fast
	}
	none, long := first("a", "00000002", "flood", "3"), first("b", "00002999", "flood", "3000")
	if long > 50*time.Millisecond+20*none {
		t.Errorf("the first screen came after %s, without a history after %s", long, none)
	}
}
