package pty

import (
	"bytes"
	"testing"
	"time"
)

// TestFirstScreen: a person sees the screen at once, whatever the history.
func TestFirstScreen(t *testing.T) {
	r := newRig(t)
	a := start(t, r, launch(t, r, "a", "flood", "3000"))
	captured(t, a, "00002999")
	fast := time.Hour
	for range 5 {
		begun := time.Now()
		c, f := rawClient(t, a.Pane().Socket, roleView)
		if k, p, err := f.next(); err != nil || k != kindOutput || !bytes.Contains(p, []byte("00002999")) {
			t.Fatalf("%c, %v", k, err)
		}
		fast = min(fast, time.Since(begun))
		_ = c.Close()
	}
	if fast > 50*time.Millisecond {
		t.Errorf("the first screen came after %s", fast)
	}
}
