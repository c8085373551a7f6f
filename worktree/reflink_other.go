//go:build !linux

package worktree

import (
	"errors"
	"os"
)

// reflink: clonefile(2) wants a path that does not exist, which os.Root cannot give.
func reflink(_, _ *os.File) error { return errors.ErrUnsupported }
