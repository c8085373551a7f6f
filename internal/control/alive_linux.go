package control

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// activity is what the threads of a process do this moment.
func activity(pid int) doing {
	if pid <= 0 {
		return doingUnknown
	}
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(dir)
	if err != nil || len(threads) == 0 {
		return doingUnknown
	}
	stopped := 0
	for _, th := range threads {
		b, err := os.ReadFile(dir + "/" + th.Name() + "/stat")
		if err != nil {
			continue
		}
		f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		if len(f) == 0 {
			continue
		}
		switch f[0][0] {
		case 'R', 'D':
			return doingWork
		case 'T', 't':
			stopped++
		}
	}
	if stopped > 0 {
		return doingStopped
	}
	return doingNothing
}

// descriptors says that a process has none left, "" where it has.
func descriptors(pid int) string {
	dir := "/proc/" + strconv.Itoa(pid)
	open, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return ""
	}
	limits, err := os.ReadFile(dir + "/limits")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(limits)) {
		rest, ok := strings.CutPrefix(line, "Max open files")
		f := strings.Fields(rest)
		if !ok || len(f) == 0 {
			continue
		}
		most, err := strconv.Atoi(f[0])
		if err == nil && len(open) >= most {
			return fmt.Sprintf("; all of its %d file descriptors are in use", most)
		}
	}
	return ""
}

// holder is the process that holds a lock, 0 where none is known.
func holder(path string) int {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	// The kernel gives the table page by page: a lock that is released between two pages
	// hides another one.
	for range tableReads {
		table, err := os.ReadFile("/proc/locks")
		if err != nil {
			return 0
		}
		if pid := holderIn(table, st.Ino, path); pid != 0 || len(table) < os.Getpagesize()/2 {
			return pid
		}
	}
	return 0
}

// tableReads is how often a table of more than a page is read before a lock counts as free.
const tableReads = 5

// holderIn finds the holder in the kernel's table of locks.
func holderIn(table []byte, inode uint64, path string) int {
	for line := range strings.Lines(string(table)) {
		// 1: FLOCK  ADVISORY  WRITE 4711 08:01:1234567 0 EOF
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], ":"+strconv.FormatUint(inode, 10)) {
			continue
		}
		// Some file systems show another device than in a file's status.
		if pid, err := strconv.Atoi(f[4]); err == nil && holds(pid, path) {
			return pid
		}
	}
	return 0
}

// holds reports whether a process has the file at path open.
func holds(pid int, path string) bool {
	fi, err := os.Stat(path)
	if err != nil {
		return false
	}
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, fd := range fds {
		if open, err := os.Stat(dir + "/" + fd.Name()); err == nil && os.SameFile(open, fi) {
			return true
		}
	}
	return false
}
