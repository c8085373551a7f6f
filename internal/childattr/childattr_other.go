//go:build !linux

package childattr

import "syscall"

// DieWithUs can do nothing here.
func DieWithUs(*syscall.SysProcAttr) {}
