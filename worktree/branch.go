package worktree

import (
	"context"

	"github.com/teamctl/teamctl/team"
)

// BranchBase checks that a branch exists and is not checked out, so that Create
// can reuse it, and returns its merge base with from ("" means HEAD of the main
// worktree). Without a common ancestor it returns the branch's tip.
//
// Errors: invalid_branch (invalid), unknown_branch, unknown_revision (not
// found), unborn_head (invalid), branch_checked_out (conflict).
func (r *Repo) BranchBase(ctx context.Context, branch, from string) (base string, err error) {
	if err := checkBranch(branch); err != nil || branch == "" {
		return "", invalid(team.ReasonBadBranch, "invalid branch name %q", branch)
	}
	tip, err := r.Resolve(ctx, "refs/heads/"+branch)
	if team.ReasonOf(err) == team.ReasonUnknownRev {
		return "", notFound(team.ReasonUnknownBranch, "no branch %s in %s", branch, r.root).
			WithHint(gitHint(r.root, "branch", "--list"))
	}
	if err != nil {
		return "", err
	}
	if err := r.checkedOut(ctx, branch, ""); err != nil {
		return "", err
	}
	if from == "" {
		from, err = r.Head(ctx)
	} else {
		from, err = r.Resolve(ctx, from)
	}
	if err != nil {
		return "", err
	}
	out, err := r.read(ctx, "merge-base", from, tip)
	if exitStatus(err) == 1 {
		return tip, nil
	}
	if err != nil {
		return "", failed("compare "+branch+" with "+from, err)
	}
	return oneLine(out), nil
}
