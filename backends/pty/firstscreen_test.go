package pty

import (
	"bytes"
	"testing"
)

// TestFirstScreen checks that what a user is sent first is the screen with the newest part of the
// history above it, of a size that does not depend on how long the history is.
func TestFirstScreen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := func(name, last string, mode ...string) []byte {
		a := start(t, r, launch(t, r, name, mode...))
		captured(t, a, last)
		c, f := rawClient(t, a.Pane().Socket, roleView)
		defer c.Close()
		k, p, err := f.next()
		if err != nil || k != kindOutput || !bytes.Contains(p, []byte(last)) {
			t.Fatalf("%c, %v: %q", k, err, p)
		}
		return p
	}
	short, long := first("a", "00001499", "flood", "1500"), first("b", "00002999", "flood", "3000")
	if bytes.Contains(long, []byte("00001499 ")) || len(long) > len(short)+len(short)/10 {
		t.Errorf("the first screen has %d bytes, %d with half of the history", len(long), len(short))
	}
}
