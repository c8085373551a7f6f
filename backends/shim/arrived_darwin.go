package shim

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/pause"
)

// passThrough sends sig to the process and gives it a moment: a thread that took an earlier signal may
// still be about to handle it.
func passThrough(sig unix.Signal) {
	_ = unix.Kill(os.Getpid(), sig)
	_ = pause.For(context.Background(), 10*time.Millisecond)
}
