//go:build !linux

package agent

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// groupAlive reports whether a process of the group lives.
func groupAlive(group int) bool { return syscall.Kill(-group, 0) == nil }

func signalName(s syscall.Signal) string { return unix.SignalName(s) }
