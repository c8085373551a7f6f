package proc

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
)

// SinceBoot is how long the machine has been up, sleep included. It runs evenly: it
// does not follow the wall clock when somebody sets that, and every process of one
// boot reads the same.
func SinceBoot() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(bootClock, &ts); err != nil {
		return 0, fmt.Errorf("read the time since boot: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}

// BootID names this boot.
func BootID() (string, error) { return bootID() }

// Age is how long ago the process was started, whatever the wall clock did
// meanwhile. One of another boot is ErrGone.
func Age(id backends.ProcID) (time.Duration, error) {
	boot, err := bootID()
	if err != nil {
		return 0, err
	}
	if boot != id.BootID {
		return 0, ErrGone
	}
	return age(id.StartTicks)
}
