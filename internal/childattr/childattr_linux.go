package childattr

import (
	"os"
	"syscall"
)

// DieWithUs ends a command when the thread that starts it ends, so with this
// process whatever ends that: what goes on for nobody is in the way. The caller
// locks its thread (runtime.LockOSThread) until the command has ended.
func DieWithUs(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// StartIn starts a command in the control group with this directory, which stays open
// until it has started.
func StartIn(a *syscall.SysProcAttr, dir *os.File) { a.UseCgroupFD, a.CgroupFD = true, int(dir.Fd()) }
