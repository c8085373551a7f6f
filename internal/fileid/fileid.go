// Package fileid identifies files on this machine.
package fileid

import (
	"os"
	"strconv"
	"syscall"
)

// Of identifies a file as long as it exists; "" if fi does not tell.
func Of(fi os.FileInfo) string {
	if fi == nil {
		return ""
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return strconv.FormatUint(uint64(st.Dev), 16) + ":" + strconv.FormatUint(st.Ino, 16) // the types differ between systems
}

// At is Of what path names now; "" if it names nothing that can be seen. It does not follow a
// symlink.
func At(path string) string {
	if path == "" {
		return ""
	}
	fi, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	return Of(fi)
}
