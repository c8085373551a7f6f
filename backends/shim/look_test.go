package shim

import (
	"os"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLookSeesPendingTerm: a SIGTERM that was sent before the agent's end has been seen counts,
// even if the shim has not handled it yet. It is not parallel: it signals its own process.
func TestLookSeesPendingTerm(t *testing.T) {
	for _, sent := range []bool{true, false} {
		sigs := make(chan os.Signal, 64)
		signal.Notify(sigs, unix.SIGTERM, unix.SIGTSTP)
		if sent {
			if err := unix.Kill(os.Getpid(), unix.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		var s state
		s.look(sigs)
		signal.Stop(sigs)
		if s.told != sent || s.hung {
			t.Errorf("SIGTERM sent: %t, seen: %t; terminal gone: %t", sent, s.told, s.hung)
		}
	}
}
