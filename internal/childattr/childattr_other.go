//go:build !linux

package childattr

import (
	"os"
	"syscall"
)

// dieWithUs does nothing on this system.
func dieWithUs(*syscall.SysProcAttr) {}

// StartIn does nothing on this system.
func StartIn(*syscall.SysProcAttr, *os.File) {}
