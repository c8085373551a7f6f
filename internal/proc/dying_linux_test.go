package proc

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// A process that was sent SIGKILL keeps its pid until the kernel ends it.
func TestDying(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"12 (a) b) S 1 20 20 34816 77 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654": false,
		"12 (a) b) D 1 20 20 34816 77 4194308 1 2 3 4 5 6 7 8 20 0 1 0 987654": true, // PF_EXITING
		"12 (a) b) Z 1 20 20 34816 77 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654": true,
		"12 (a) b) S 1 20": false,
		"":                 false,
	} {
		if got := leaving([]byte(line)); got != want {
			t.Errorf("%q: leaving %v", line, got)
		}
	}
	for text, want := range map[string]bool{
		"Name:\tx\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\nSigBlk:\tffffffffffffffff\n": false,
		"SigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n":                                      true,
		"SigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n":                                      true,
		"SigPnd:\t0000000000000000\nShdPnd:\t0000000000004000\n":                                      false, // SIGTERM
		"Name:\tShdPnd: 0000000000000100\n":                                                           false,
	} {
		if got := killed([]byte(text)); got != want {
			t.Errorf("%q: killed %v", text, got)
		}
	}
	if Dying(os.Getpid()) {
		t.Error("this process is dying")
	}
	c, id := run(t, "g-dying", "idle")
	if Dying(id.PID) {
		t.Error("one that runs is dying")
	}
	if err := Signal(id, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// For a moment the signal is no longer pending and the exit has not begun:
	// after that it is dying until it is reaped.
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Minute); !Zombie(id); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it does not end")
		}
	}
	if !Dying(id.PID) {
		t.Error("a zombie is not dying")
	}
	_ = c.Wait()
	if Dying(id.PID) {
		t.Error("one that is gone is dying")
	}
}
