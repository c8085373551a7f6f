package tool

import (
	"context"
	"slices"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// PruneTreesIn selects the worktrees to remove.
type PruneTreesIn struct {
	Members []string // former members; empty for all
	DryRun  bool     // only report what would be done
}

// PrunedTree is the result for the worktree of a former member.
type PrunedTree struct {
	Member string `json:"member"`
	Repo   string `json:"repo,omitempty"` // name of the repository; "" is the team's own
	Path   string `json:"path"`
	Branch string `json:"branch,omitempty"`
	Status string `json:"status"`           // removed, already_removed, would_be_removed, kept
	Reason string `json:"reason,omitempty"` // why it is kept
	Note   string `json:"note,omitempty"`   // output of the teardown command

	BranchDeleted bool `json:"branchDeleted,omitempty"` // all of its commits are on other branches
}

// PruneTrees removes the worktrees left by former members that hold nothing which is not
// elsewhere: no uncommitted change, no ignored file with work, no process. A branch with commits
// of its own stays, so a member that returns finds them. A worktree that cannot be removed is
// kept, and the reason is reported. Not found: no former member of the name has left a worktree.
// Conflict: a named member is still on the roster.
func (t *Team) PruneTrees(ctx context.Context, c Caller, in PruneTreesIn) ([]PrunedTree, error) {
	if err := t.may(ctx, c, OpWorktrees); err != nil {
		return nil, err
	}
	out := []PrunedTree{}
	left, err := t.leftTrees(ctx)
	if err == nil {
		left, out, err = t.leftBy(ctx, left, in.Members)
	}
	if err != nil {
		return nil, err
	}
	boot, err := t.Bootstrap(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range left {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		p := PrunedTree{Member: m.Name, Repo: m.Spec.Repo, Path: m.Worktree, Branch: m.Branch, Status: "kept"}
		repo, err := t.repo(ctx, m.Spec.Repo)
		if err == nil {
			err = t.pruneTree(ctx, repo, boot, m, in.DryRun, &p)
		}
		if err != nil {
			p.Reason = err.Error()
		}
		out = append(out, p)
	}
	return out, nil
}

func (t *Team) pruneTree(ctx context.Context, repo *worktree.Repo, boot team.Bootstrap, m ledger.Member, dry bool, p *PrunedTree) error {
	if err := repo.CheckRemove(ctx, []string{m.Worktree}, worktree.RemoveIn{})[0]; err != nil {
		return err
	}
	if dry {
		p.Status = "would_be_removed"
		return nil
	}
	p.Note = t.teardown(ctx, repo, boot, m)
	checked := len(boot.Of(m.Spec.Repo).Teardown) == 0
	r, err := repo.Remove(ctx, m.Worktree, worktree.RemoveIn{DeleteBranch: trees.OwnBranch(t.Layout.Key, m.Branch), Checked: checked})
	if err != nil {
		return err
	}
	p.Status, p.BranchDeleted = "removed", r.BranchDeleted
	return nil
}

// leftBy returns the named members of left, or all without names, and the worktrees of named members
// that were removed before.
func (t *Team) leftBy(ctx context.Context, left []ledger.Member, names []string) (out []ledger.Member, gone []PrunedTree, err error) {
	gone = []PrunedTree{}
	if len(names) == 0 {
		return left, gone, nil
	}
	roster, err := t.Ledger.Members(ctx, true)
	if err != nil {
		return nil, gone, err
	}
	for _, n := range names {
		name, err := t.address(n)
		if err != nil {
			return nil, gone, err
		}
		if m, err := t.Ledger.Member(ctx, name); err == nil && m.RemovedAt == 0 {
			return nil, gone, team.Errorf(team.CodeConflict, "%s has not left the team", name).WithReason(team.ReasonOnTheRoster).
				WithHint("teamctl shutdown " + name)
		}
		i := slices.IndexFunc(left, func(m ledger.Member) bool { return m.Name == name })
		at := slices.IndexFunc(roster, func(m ledger.Member) bool { return m.Name == name && m.Worktree != "" })
		if i < 0 && at >= 0 {
			m := roster[at]
			gone = append(gone, PrunedTree{Member: name, Repo: m.Spec.Repo, Path: m.Worktree, Branch: m.Branch, Status: AlreadyRemoved})
			continue
		}
		if i < 0 {
			return nil, gone, team.Errorf(team.CodeNotFound, "no member named %s has left a worktree", name).WithHint("teamctl worktree ls")
		}
		out = append(out, left[i])
	}
	return out, gone, nil
}
