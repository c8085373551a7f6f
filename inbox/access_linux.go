package inbox

import (
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	noAccessTime = syscall.O_NOATIME
	noFollow     = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
)

// accessed returns when a file was last read, according to its file system.
func accessed(info fs.FileInfo) (time.Time, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(st.Atim.Unix()), true
}

// forgetAccess sets the time at which a file was last read to the epoch.
func forgetAccess(path string) {
	_ = unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{}, {Nsec: unix.UTIME_OMIT}}, unix.AT_SYMLINK_NOFOLLOW)
}
