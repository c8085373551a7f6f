package shim

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// passThrough sends sig to the process and gives it a moment: a thread that took an earlier signal may
// still be about to handle it.
func passThrough(sig unix.Signal) {
	_ = unix.Kill(os.Getpid(), sig)
	time.Sleep(10 * time.Millisecond)
}
