package procfs

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// tableReads is how often a table of more than a page is read before a lock counts as
// free.
const tableReads = 5

// LockHolder returns the process that holds the exclusive flock on a file, or 0.
func LockHolder(path string) int {
	fi, err := os.Stat(path)
	if err != nil {
		return 0
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	// The kernel returns the table page by page: a lock that is released between two
	// pages hides another one.
	for range tableReads {
		table, err := os.ReadFile("/proc/locks")
		if err != nil {
			return 0
		}
		if pid := holderIn(string(table), st.Ino, fi); pid != 0 || len(table) < os.Getpagesize()/2 {
			return pid
		}
	}
	return 0
}

// holderIn finds the holder in a table of locks. Only the inode there is reliable, because
// some file systems report another device; the process must therefore have the file open
// as well.
func holderIn(table string, inode uint64, file os.FileInfo) int {
	suffix := ":" + strconv.FormatUint(inode, 10)
	for line := range strings.Lines(table) {
		f := strings.Fields(line) // for example "3: FLOCK ADVISORY WRITE 31573 fe:00:10020006 0 EOF"
		if len(f) < 6 || f[1] != "FLOCK" || f[3] != "WRITE" || !strings.HasSuffix(f[5], suffix) {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 && hasOpen(pid, file) {
			return pid
		}
	}
	return 0
}

// hasOpen reports whether a process has a file open.
func hasOpen(pid int, file os.FileInfo) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, fd := range fds {
		if fi, err := os.Stat(dir + fd.Name()); err == nil && os.SameFile(fi, file) {
			return true
		}
	}
	return false
}
