package childattr

import (
	"os"
	"syscall"
)

// dieWithUs makes the kernel end a command when the thread that starts it ends,
// and so with this process however it ends: otherwise the command would
// continue without an owner.
func dieWithUs(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// StartIn starts a command in the control group with this directory, which must
// stay open until it has started.
func StartIn(a *syscall.SysProcAttr, dir *os.File) { a.UseCgroupFD, a.CgroupFD = true, int(dir.Fd()) }
