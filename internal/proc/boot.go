package proc

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
)

// SinceBoot returns how long the machine has been up, sleep included. The clock
// runs evenly: it does not follow changes of the wall clock, and every process
// of one boot reads the same.
func SinceBoot() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(bootClock, &ts); err != nil {
		return 0, fmt.Errorf("read the time since boot: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}

// BootID returns the id of this boot.
func BootID() (string, error) { return bootID() }

// Age returns how long ago the process was started, regardless of changes of
// the wall clock. A process of another boot is ErrGone.
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
