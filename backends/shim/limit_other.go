//go:build !linux

package shim

import (
	"errors"
	"os"
	"syscall"
)

// intoGroup does nothing, because there are no control groups.
func intoGroup(*syscall.SysProcAttr, int) {}

// macOS does not enforce a memory limit, and a process limit would count
// everything that the user runs on the desktop.
const canLimitMemory = false

func canLimitPIDs() bool { return false }

func selfPath() (string, error) { return os.Executable() }

func limitSelf(int64, int64) error { return errors.New("resource limits are not set on this system") }
