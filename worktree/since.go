package worktree

import (
	"context"
	"strconv"
)

// maxSince is how many commits Since returns.
const maxSince = 100

// Since returns the commits at the head of the worktree at path that a commit does not have,
// the oldest first, and the newest of them where there are more than a hundred.
//
// Errors: path_missing (not found), not_a_worktree (invalid), and those of git.
func (r *Repo) Since(ctx context.Context, path, from string) ([]string, error) {
	t, err := r.tree(path)
	if err != nil {
		return nil, err
	}
	if err := checkRev(from); err != nil {
		return nil, err
	}
	out, err := t.read(ctx, "rev-list", "--reverse", "--max-count="+strconv.Itoa(maxSince), from+"..HEAD")
	if err != nil {
		return nil, failed("list the commits of "+t.at+" since "+from, err)
	}
	return lines(out, '\n'), nil
}
