package worktree

import (
	"context"
	"slices"
)

// Both is a file that two worktrees have changed, with commits or without.
type Both struct {
	Path           string
	DirtyA, DirtyB bool // has uncommitted changes
}

// BothChanged returns the paths of those files that two worktrees with the commits a and b
// have changed differently. A committed change counts for the side that made it since the
// merge base: a side that has only merged it has not changed the file, and neither has a side
// with the same change as the other.
func (r *Repo) BothChanged(ctx context.Context, a, b string, files []Both) (paths []string, err error) {
	for _, rev := range []string{a, b} {
		if err := checkRev(rev); err != nil {
			return nil, err
		}
	}
	open := func(f Both) bool { return !f.DirtyA || !f.DirtyB }
	var onA, onB map[string]bool
	// Each comparison starts a git, and often one leaves no file.
	if slices.ContainsFunc(files, open) {
		if onB, err = r.changedFiles(ctx, a+"..."+b); err != nil {
			return nil, err
		}
		files = slices.DeleteFunc(slices.Clone(files), func(f Both) bool { return !f.DirtyB && !onB[f.Path] })
	}
	if slices.ContainsFunc(files, open) {
		if onA, err = r.changedFiles(ctx, b+"..."+a); err != nil {
			return nil, err
		}
		files = slices.DeleteFunc(files, func(f Both) bool { return !f.DirtyA && !onA[f.Path] })
	}
	// A file that only one side has changed differs.
	if slices.ContainsFunc(files, func(f Both) bool { return open(f) && onA[f.Path] && onB[f.Path] }) {
		differ, err := r.changedFiles(ctx, a, b)
		if err != nil {
			return nil, err
		}
		files = slices.DeleteFunc(files, func(f Both) bool { return open(f) && !differ[f.Path] })
	}
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return paths, nil
}

// changedFiles returns the files in which commits differ.
func (r *Repo) changedFiles(ctx context.Context, revs ...string) (map[string]bool, error) {
	args := append([]string{"diff", "--name-only", "-z", "--no-renames", "--no-ext-diff"}, revs...)
	out, err := r.read(ctx, append(args, "--")...)
	if err != nil {
		return nil, failed("compare commits of "+r.root, err)
	}
	files := map[string]bool{}
	for _, f := range lines(out, 0) {
		files[f] = true
	}
	return files, nil
}
