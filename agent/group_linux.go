package agent

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// groupAlive reports whether a process of the group lives. kill says yes for
// zombies too, which an init that does not reap leaves lying.
func groupAlive(group int) bool {
	if syscall.Kill(-group, 0) != nil {
		return false
	}
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	for _, p := range procs {
		if _, err := strconv.Atoi(p.Name()); err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + p.Name() + "/stat")
		if err != nil {
			continue // gone
		}
		// The name in parentheses may hold anything, also parentheses.
		_, rest, ok := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") "))
		if !ok {
			continue
		}
		f := bytes.Fields(rest)
		if len(f) < 3 || f[0][0] == 'Z' || f[0][0] == 'X' {
			continue
		}
		if pgrp, err := strconv.Atoi(string(f[2])); err == nil && pgrp == group {
			return true
		}
	}
	return false
}

func signalName(s syscall.Signal) string { return unix.SignalName(s) }
