//go:build !linux

package inbox

import (
	"io/fs"
	"syscall"
	"time"
)

const (
	noAccessTime = 0
	noFollow     = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
)

// accessed reports no access time: teamctl's own reads would look like another
// program's.
func accessed(fs.FileInfo) (time.Time, bool) { return time.Time{}, false }

func forgetAccess(string) {}
