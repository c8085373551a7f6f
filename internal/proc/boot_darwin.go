package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootClock continues while the machine sleeps.
const bootClock = unix.CLOCK_MONOTONIC

// age uses the wall clock, because macOS records the start of a process only by
// it.
func age(start uint64) (time.Duration, error) {
	return max(0, time.Since(time.UnixMicro(int64(start)))), nil // microseconds since 1970
}
