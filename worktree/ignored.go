package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// ignored lists the paths that git ignores in t, relative to it; a directory,
// which ends with a slash, stands for what is in it.
func (t tree) ignored(ctx context.Context) ([]string, error) {
	out, err := t.read(ctx, "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
	if err != nil {
		return nil, failed("list ignored files of "+t.at, err)
	}
	return lines(out, 0), nil
}

// ignoredRepos returns the repositories below ignored paths, relative to t: for
// example a clone in vendor/ with the agent's commits. git does not search
// there, and no snapshot holds it.
func (t tree) ignoredRepos(ignored []string) ([]string, error) {
	var found []string
	for _, name := range ignored {
		if !strings.HasSuffix(name, "/") {
			continue
		}
		root := filepath.Join(t.path, filepath.FromSlash(name))
		err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // a build removes its temporary files
				return nil
			}
			if err != nil || d.Name() != ".git" {
				return err
			}
			if isGitDir(p) {
				rel, err := filepath.Rel(t.path, filepath.Dir(p))
				if err != nil {
					return err
				}
				found = append(found, filepath.ToSlash(rel))
			}
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			return nil, conflict(team.ReasonWorktreeUnknown, "list ignored files of %s: %w", t.at, err)
		}
	}
	return found, nil
}

// isGitDir reports whether p is a git directory by git's own test, or a file
// that names one. A package may contain a .git for its tests that is neither.
func isGitDir(p string) bool {
	if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() {
		to, err := adminOf(filepath.Dir(p))
		if err != nil {
			return false
		}
		_, err = os.Lstat(filepath.Join(to, "HEAD"))
		return err == nil
	}
	for _, part := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(p, part)); err != nil {
			return false
		}
	}
	return true
}
