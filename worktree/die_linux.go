package worktree

import "syscall"

// dieWithUs ends a command when this process is killed: a gate that goes on for
// nobody would be in the way of the next one.
func dieWithUs(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
