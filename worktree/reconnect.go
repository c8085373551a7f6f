package worktree

import "context"

// Reconnect informs git of the new paths of moved worktrees. Each keeps its
// registration, branch and index; a worktree that git already knows at its path
// is unchanged.
func (r *Repo) Reconnect(ctx context.Context, paths ...string) error {
	if len(paths) == 0 {
		return nil
	}
	if _, err := git(ctx, call{dir: r.root, args: append([]string{"worktree", "repair"}, paths...)}); err != nil {
		return failed("reconnect worktrees of "+r.root, err)
	}
	return nil
}
