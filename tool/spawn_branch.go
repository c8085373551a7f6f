package tool

import (
	"context"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// existingBranch validates the branch on which a member is to work, before anything is started,
// and returns the commit where it diverged from the base of the team, named by teamBase ("" for
// HEAD). The branch may be checked out in the worktree left by the last member called name, which
// is reused.
//
// Errors: invalid, unknown_branch (not found), branch_checked_out (conflict).
func (t *Team) existingBranch(ctx context.Context, root, teamBase, tree, name string, in SpawnIn) (base string, err error) {
	switch {
	case tree != "own":
		return "", team.Errorf(team.CodeInvalid, "a branch needs a worktree of the member's own").WithHint("leave out --worktree, or --branch")
	case in.Count > 1:
		return "", team.Errorf(team.CodeInvalid, "%d members cannot work on one branch", in.Count).WithHint("spawn one with --branch, the others without")
	}
	repo, err := worktree.OpenRepo(ctx, root)
	if err != nil {
		return "", err
	}
	from := in.Base
	if from == "" && in.Repo == "" { // the team's base is a commit of its own repository
		from = teamBase
	}
	base, err = repo.BranchBase(ctx, in.Branch, from)
	if team.ReasonOf(err) != team.ReasonCheckedOut || in.Fresh {
		return base, err
	}
	left, lerr := t.leftTrees(ctx)
	if lerr != nil {
		return "", lerr
	}
	for _, m := range left {
		if m.Name == name && m.Branch == in.Branch && m.Spec.Repo == in.Repo {
			return m.Base, nil
		}
	}
	return "", err
}
