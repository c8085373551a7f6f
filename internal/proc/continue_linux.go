package proc

import (
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Continue continues a child whenever a signal has stopped it, as a shim does for its agent, until stop
// is called. A stopped server stays connected and says nothing: only its parent is notified. A child
// that is stopped again within a second, as one that reads from the terminal, stays stopped.
func Continue(child *os.Process) (stop func()) {
	changed, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(changed, unix.SIGCHLD)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		var last time.Time
		for {
			var info unix.Siginfo // without WEXITED: the end of the child is for whoever waits for it
			err := unix.Waitid(unix.P_PID, child.Pid, &info, unix.WSTOPPED|unix.WNOHANG, nil)
			if err == nil && info.Signo != 0 && time.Since(last) > time.Second {
				last = time.Now()
				_ = child.Signal(unix.SIGCONT) // it may have ended
			}
			select {
			case <-changed:
			case <-done:
				return
			}
		}
	})
	return func() {
		signal.Stop(changed)
		close(done)
		watcher.Wait()
	}
}
