package childattr

import "syscall"

// DieWithUs ends a command when the thread that starts it ends, so with this
// process whatever ends that: what goes on for nobody is in the way. The caller
// locks its thread (runtime.LockOSThread) until the command has ended.
func DieWithUs(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
