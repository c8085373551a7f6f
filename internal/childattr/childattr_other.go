//go:build !linux

package childattr

import (
	"os"
	"syscall"
)

// DieWithUs does nothing on this system.
func DieWithUs(*syscall.SysProcAttr) {}

// StartIn does nothing on this system.
func StartIn(*syscall.SysProcAttr, *os.File) {}
