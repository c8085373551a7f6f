package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootClock goes on while the machine sleeps.
const bootClock = unix.CLOCK_MONOTONIC

// age: macOS keeps the start of a process by the wall clock only.
func age(start uint64) (time.Duration, error) {
	return max(0, time.Since(time.UnixMicro(int64(start)))), nil //nolint:gosec // microseconds since 1970
}
