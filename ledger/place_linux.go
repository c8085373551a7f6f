package ledger

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func born(dir string, _ *syscall.Stat_t) int64 {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}
