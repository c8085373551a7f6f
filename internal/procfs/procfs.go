// Package procfs parses what Linux reports about processes below /proc. It knows pids
// only, which are reused: package proc identifies processes. Elsewhere every function
// returns an error or nothing.
package procfs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc (USER_HZ, 100 a second on every architecture of Go).
const tick = 10 * time.Millisecond

// Stat is the state of a process or thread (proc_pid_stat(5)).
type Stat struct {
	PID     int
	Name    string // of the program, cut to 15 bytes; it may contain anything
	State   byte   // 'R' running, 'D' in the kernel, 'T' and 't' stopped, 'Z' zombie, ...
	Parent  int
	Group   int // process group
	Front   int // process group in the foreground of the terminal
	Flags   uint64
	Threads int
	Used    time.Duration // processor time of all threads
	Start   uint64        // ticks since boot
	Memory  bool          // it has an address space, unlike zombies and kernel threads
	Code    bool          // it has a program; false in the middle of an exec
}

// Of returns the state of a process.
func Of(pid int) (Stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Stat{}, err
	}
	return ParseStat(b)
}

// ParseStat parses a line of /proc/<pid>/stat. The name is in parentheses and may itself
// contain blanks and parentheses: fields only begin after the last one.
func ParseStat(b []byte) (s Stat, err error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return Stat{}, fmt.Errorf("parse process state %q: no command name", b)
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 { // field 3 is f[0]; field 22 is f[19]
		return Stat{}, fmt.Errorf("parse process state %q: too short", b)
	}
	num := func(s string) uint64 {
		n, e := strconv.ParseInt(s, 10, 64)
		if e != nil && err == nil {
			err = fmt.Errorf("parse process state: %w", e)
		}
		return uint64(n)
	}
	s = Stat{
		PID: int(num(strings.TrimSpace(string(b[:open])))), Name: string(b[open+1 : end]), State: f[0][0],
		Parent: int(num(f[1])), Group: int(num(f[2])), Front: int(num(f[5])),
		Flags: num(f[6]), Threads: int(num(f[17])), Start: num(f[19]),
		Used: time.Duration(num(f[11])+num(f[12])) * tick,
	}
	s.Memory = len(f) > 20 && f[20] != "0"
	s.Code = len(f) > 23 && f[23] != "0" // fs/binfmt_elf.c sets start_code when the environment is in place
	return s, err
}

// PIDs lists the processes. Some may exit before they are looked at.
func PIDs() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	pids := make([]int, 0, len(names))
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Args returns the arguments of a process, or nil if they cannot be read.
func Args(pid int) []string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// Dir returns the working directory of a process. It is an error for a process that has
// exited, a kernel thread, and one of another user.
func Dir(pid int) (string, error) { return os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd") }
