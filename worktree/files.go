package worktree

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// errNotDir means that a component of the path is not a directory, so the path
// does not exist.
const errNotDir = syscall.ENOTDIR

// removeTree deletes a directory and everything in it; it deletes links without
// following them. It first makes directories without write permission (module
// caches) writable if they prevent the deletion.
func removeTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	// Errors of the walk show up again in the second RemoveAll.
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode()&0o700 != 0o700 {
			_ = os.Chmod(p, info.Mode().Perm()|0o700) // before WalkDir reads it
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("delete %s: %w", dir, err)
	}
	return nil
}
