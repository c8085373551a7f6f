//go:build !linux

package worktree

import "syscall"

// dieWithUs can do nothing here.
func dieWithUs(*syscall.SysProcAttr) {}
