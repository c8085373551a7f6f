package control

import "golang.org/x/sys/unix"

// handleOf refers to a file without opening it: to close a descriptor of the ledger's
// would drop the locks that SQLite has on it in this process, and one of O_PATH does not.
func handleOf(path string) int {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

func closeHandle(fd int) {
	if fd >= 0 {
		_ = unix.Close(fd)
	}
}

// handleLinks returns how many names the file has; -1 if unknown.
func handleLinks(fd int) int {
	var st unix.Stat_t
	if fd < 0 || unix.Fstat(fd, &st) != nil {
		return -1
	}
	return int(st.Nlink) // a handful
}
