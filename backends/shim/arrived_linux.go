package shim

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/pause"
)

// passThrough returns once every thread that may have taken an earlier signal has handled sig: Go's
// handlers run with all signals blocked, so the earlier one is handled by then. It gives up after a
// second.
func passThrough(sig unix.Signal) {
	end := time.Now().Add(time.Second)
	self := os.Getpid()
	for pending("/proc/self/status", "ShdPnd:", unix.SIGTERM) && time.Now().Before(end) {
		_ = pause.For(context.Background(), time.Millisecond)
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Tgkill(self, tid, sig)
		}
	}
	for _, t := range threads {
		for pending("/proc/self/task/"+t.Name()+"/status", "SigPnd:", sig) && time.Now().Before(end) {
			_ = pause.For(context.Background(), time.Millisecond)
		}
	}
}

// pending reports whether the line of a status file in /proc has a signal; not for a thread that is gone.
func pending(file, line string, sig unix.Signal) bool {
	b, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		if set, is := bytes.CutPrefix(s.Bytes(), []byte(line)); is {
			mask, err := strconv.ParseUint(string(bytes.TrimSpace(set)), 16, 64)
			return err == nil && mask&(1<<(uint(sig)-1)) != 0
		}
	}
	return false
}
