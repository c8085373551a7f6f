//go:build !linux

// Package childattr has attributes of child processes that not every system knows.
package childattr

import "syscall"

// DieWithUs can do nothing here.
func DieWithUs(*syscall.SysProcAttr) {}
