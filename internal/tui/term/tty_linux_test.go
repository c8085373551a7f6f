package term

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/openpty"
)

// The end of the screen waits once, for a moment, for a terminal that accepts no output, and writes everything
// to a terminal that accepts it late.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	master, tty, err := openpty.Open()
	if err != nil {
		t.Skipf("no pty: %v", err)
	}
	start := func() *device {
		d := &device{path: tty.Name()}
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := start()
	d.Drain()
	for err = nil; err == nil; {
		_, err = d.Write(make([]byte, 4096))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, master)
	}()
	if _, err := d.Write([]byte("more")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a write after one that failed: %v", err)
	}
	if err := d.Stop(); err != nil {
		t.Error(err)
	}
	d = start()
	d.Drain()
	<-time.After(giveUp + giveUp/5)
	if _, err := d.Write([]byte("late")); err != nil {
		t.Errorf("a late write: %v", err)
	}
	if err := errors.Join(d.Stop(), tty.Close()); err != nil {
		t.Error(err)
	}
	<-done
	if err := master.Close(); err != nil {
		t.Error(err)
	}
}
