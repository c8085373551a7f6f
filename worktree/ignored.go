package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ignoredRepos are the repositories in what git ignores in t, relative to it: a clone
// below vendor/, say, with commits of the agent's. git does not look there, and no
// snapshot holds it.
func (t tree) ignoredRepos(ctx context.Context) ([]string, error) {
	out, err := t.read(ctx, "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
	if err != nil {
		return nil, failed("look at what is ignored in "+t.at, err)
	}
	var found []string
	for _, name := range lines(out, 0) {
		if !strings.HasSuffix(name, "/") {
			continue
		}
		root := filepath.Join(t.path, filepath.FromSlash(name))
		err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // a build that cleans up behind itself
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
			return nil, conflict(ReasonUnknown, "look at what is ignored in %s: %w", t.at, err)
		}
	}
	return found, nil
}

// isGitDir tells a git directory as git does, or a file that names one, from what only
// has the name, as packages bring along for their tests.
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
