package holder

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
)

// lockHolder returns the process, other than this one, that holds the exclusive
// flock on a file. Only the inode in the kernel's list is reliable, because
// some file systems report another device there; the process must therefore
// have the file open as well.
func lockHolder(path string) (backends.ProcID, bool) {
	fi, err := os.Stat(path)
	if err != nil {
		return backends.ProcID{}, false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	text, err := os.ReadFile("/proc/locks")
	if err != nil || !ok {
		return backends.ProcID{}, false
	}
	inode := ":" + strconv.FormatUint(st.Ino, 10)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line) // for example "3: FLOCK ADVISORY WRITE 31573 fe:00:10020006 0 EOF"
		if len(f) < 6 || f[1] != "FLOCK" || f[3] != "WRITE" || !strings.HasSuffix(f[5], inode) {
			continue
		}
		pid, err := strconv.Atoi(f[4])
		if err != nil || pid <= 0 || pid == os.Getpid() {
			continue
		}
		id, err := proc.Identify(pid)
		if err == nil && hasOpen(pid, fi) {
			return id, true
		}
	}
	return backends.ProcID{}, false
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
