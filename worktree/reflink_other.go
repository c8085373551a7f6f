//go:build !linux

package worktree

import (
	"errors"
	"os"
)

// reflink is unsupported: clonefile(2) requires a path that does not exist,
// which os.Root cannot provide.
func reflink(_, _ *os.File) error { return errors.ErrUnsupported }
