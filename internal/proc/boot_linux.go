package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

const bootClock = unix.CLOCK_BOOTTIME

// tick is the unit of times in /proc: USER_HZ is 100 on every architecture
// supported by Go.
const tick = 10 * time.Millisecond

func age(start uint64) (time.Duration, error) {
	up, err := SinceBoot()
	return max(0, up-time.Duration(start)*tick), err // ticks since boot
}
