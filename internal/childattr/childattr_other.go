//go:build !linux

package childattr

import (
	"os"
	"syscall"
)

// DieWithUs can do nothing here.
func DieWithUs(*syscall.SysProcAttr) {}

// StartIn can do nothing here.
func StartIn(*syscall.SysProcAttr, *os.File) {}
