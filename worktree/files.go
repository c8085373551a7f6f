package worktree

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// errNotDir: a component of the path is no directory, so the path does not exist.
const errNotDir = syscall.ENOTDIR

// removeTree deletes a directory and everything in it; links are deleted, not
// followed. Directories without write permission (module caches) are made
// writable first when they stand in the way.
func removeTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	// What cannot be walked shows in the second try.
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
