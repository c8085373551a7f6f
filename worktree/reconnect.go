package worktree

import "context"

// Reconnect tells git where worktrees are whose directories were moved. Each keeps its
// registration, its branch and its index; one that git knows at its path stays as it is.
func (r *Repo) Reconnect(ctx context.Context, paths ...string) error {
	if len(paths) == 0 {
		return nil
	}
	if _, err := git(ctx, call{dir: r.root, args: append([]string{"worktree", "repair"}, paths...)}); err != nil {
		return failed("reconnect worktrees of "+r.root, err)
	}
	return nil
}
