package childattr

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts a command that dies with this process, on a thread of its own, and waits
// for it; ended gets what Wait returns. enter, if there is one, runs on that thread first
// and may change it for good: the command inherits what it is then, and nothing else runs
// on it afterwards.
func Start(cmd *exec.Cmd, enter func() error) (ended <-chan error, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	dieWithUs(cmd.SysProcAttr)
	end := make(chan error, 1)
	started := make(chan error, 1)
	go func() {
		// The signal of dieWithUs is sent when this thread ends, not the process.
		runtime.LockOSThread()
		if enter == nil {
			defer runtime.UnlockOSThread()
		} else if err := enter(); err != nil {
			started <- err
			return // a goroutine that ends locked takes its thread with it
		}
		err := cmd.Start()
		started <- err
		if err == nil {
			end <- cmd.Wait()
		}
	}()
	return end, <-started
}
