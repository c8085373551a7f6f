// Package trees manages the worktrees of members: the path, branch and repository of each, its
// setup, and what becomes of worktrees that are left behind. Package worktree has the git
// operations. Nothing here needs a supervisor; the steps of a start call it.
package trees

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// Trees manages the worktrees of a team's members.
type Trees struct {
	loop.Team
	life context.Context
}

// New returns the Trees of a team. Setup commands end with life.
func New(life context.Context, t loop.Team) Trees { return Trees{Team: t, life: life} }

// Ensure returns the member's worktree, created if missing; nil if the member has none.
func (s Trees) Ensure(ctx context.Context, t ledger.TeamRow, row ledger.Member) (*worktree.Worktree, bool, error) {
	if row.Spec.WorktreeMode == "none" {
		return nil, false, nil
	}
	root, err := s.RepoPath(ctx, t, row)
	switch {
	case err != nil || root == "":
		return nil, false, err
	case row.Spec.WorktreeMode != "own":
		return &worktree.Worktree{Path: row.Spec.WorktreeMode, Repo: root, Branch: row.Branch, Base: row.Base}, false, nil
	}
	repo, err := worktree.OpenRepo(ctx, root)
	if err != nil {
		return nil, false, err
	}
	if row.Worktree == "" && !row.Spec.Fresh {
		if row, err = s.again(ctx, repo, row); err != nil {
			return nil, false, err
		}
	} else if row.Worktree == "" {
		s.clearLeft(ctx, t.Key, repo, row)
	}
	if row.Worktree != "" {
		// A worktree whose creation was cut short looks like any other until Repair removes it,
		// which must not happen under a running agent.
		if _, err := repo.Repair(ctx); err != nil {
			return nil, false, err
		}
		_, err := repo.Status(ctx, row.Worktree)
		switch team.ReasonOf(err) {
		case team.ReasonPathMissing, team.ReasonNotWorktree: // deleted; the branch has every commit
		default:
			return &worktree.Worktree{Path: row.Worktree, Repo: root, Branch: row.Branch, Base: row.Base}, false, err
		}
		tree, err := repo.Create(ctx, worktree.CreateIn{Path: row.Worktree, Branch: row.Branch, Base: row.Base, Reuse: true, Progress: s.checkoutProgress(row.Name)})
		return &tree, false, err
	}
	dir := t.WorktreeDir
	if dir == "" {
		dir = s.Layout.Worktrees()
	}
	base := row.Base
	if base == "" && row.Spec.Repo == "" { // the team's base is a commit of its own repository
		base = t.Base
	}
	name := row.Name
	for n := 2; ; n++ {
		in := worktree.CreateIn{Path: filepath.Join(dir, name), Branch: BranchName(t.Key, name, row.Branch), Base: base,
			Reuse: row.Branch != "", Progress: s.checkoutProgress(row.Name)}
		if n <= maxTrees && taken(ctx, repo, in) {
			name = row.Name + "-" + strconv.Itoa(n)
			continue
		}
		// The path is recorded first: after a kill right after Create, the next supervisor finds the
		// worktree there.
		_, err := s.Ledger.UpdateMember(ctx, ledger.MemberPatch{SessionKey: row.SessionKey, Worktree: &in.Path, Branch: &in.Branch})
		if err != nil {
			return nil, false, err
		}
		tree, err := repo.Create(ctx, in)
		switch team.ReasonOf(err) {
		case team.ReasonBranchExists, team.ReasonCheckedOut, team.ReasonPathExists, team.ReasonWorktreeExists:
			if n <= maxTrees && (!in.Reuse || team.ReasonOf(err) != team.ReasonCheckedOut) {
				name = row.Name + "-" + strconv.Itoa(n)
				continue
			}
		}
		return &tree, err == nil, err
	}
}

// maxTrees is the maximum number of worktrees of one name skipped for a free path.
const maxTrees = 10_000

// taken reports whether the path or the branch exists. An explicitly named branch may exist.
func taken(ctx context.Context, repo *worktree.Repo, in worktree.CreateIn) bool {
	if _, err := os.Lstat(in.Path); err == nil {
		return true
	}
	if in.Reuse {
		return false
	}
	has, err := repo.HasBranch(ctx, in.Branch)
	return err == nil && has
}

// Drop removes a worktree created by this start: it is empty; one with content is kept. Its branch
// is deleted only if this start created it, too.
func (s Trees) Drop(tree *worktree.Worktree, branch bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	repo, err := worktree.OpenRepo(ctx, tree.Repo)
	if err != nil {
		return err
	}
	_, err = repo.Remove(ctx, tree.Path, worktree.RemoveIn{Unused: true, DeleteBranch: branch})
	return err
}

// Left returns the members that have left a worktree of their own behind, newest first: one for
// each worktree that no current member uses. The caller checks whether it still exists. all is the
// roster including former members.
func Left(all []ledger.Member) []ledger.Member {
	var out []ledger.Member
	for _, m := range all {
		if m.RemovedAt != 0 && m.StartedAt != 0 && m.Worktree != "" && m.Spec.WorktreeMode == "own" {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b ledger.Member) int { return int(b.RemovedAt - a.RemovedAt) })
	used := map[string]bool{}
	for _, m := range all {
		if m.RemovedAt == 0 {
			used[m.Worktree], used[m.Spec.WorktreeMode] = true, true
		}
	}
	return slices.DeleteFunc(out, func(m ledger.Member) bool {
		was := used[m.Worktree]
		used[m.Worktree] = true
		return was
	})
}

// left returns the worktrees in a repository left by former members of a name, newest first.
func (s Trees) left(ctx context.Context, row ledger.Member) ([]ledger.Member, error) {
	all, err := s.Ledger.Members(ctx, true)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(Left(all), func(m ledger.Member) bool {
		return m.Name != row.Name || m.Spec.Repo != row.Spec.Repo
	}), nil
}

// again gives a new member the worktree and branch left by the last member of its name. A deleted
// worktree is created again if its branch exists. Recording it first lets the next supervisor find
// it.
func (s Trees) again(ctx context.Context, repo *worktree.Repo, row ledger.Member) (ledger.Member, error) {
	left, err := s.left(ctx, row)
	if err != nil {
		return row, err
	}
	for _, m := range left {
		if row.Branch != "" && row.Branch != m.Branch {
			continue
		}
		if _, err := os.Lstat(m.Worktree); err != nil {
			has, err := repo.HasBranch(ctx, m.Branch)
			if err != nil && !team.IsCode(err, team.CodeInvalid) { // no branch has an invalid name
				return row, err
			}
			if !has {
				continue
			}
		}
		return s.Ledger.UpdateMember(ctx, ledger.MemberPatch{SessionKey: row.SessionKey, Worktree: &m.Worktree, Branch: &m.Branch, Base: &m.Base})
	}
	return row, nil
}

// clearLeft removes the worktrees left by former members of the name that hold nothing which is
// not elsewhere; their commits stay on their branches. A worktree that cannot be removed does not
// block a new one.
func (s Trees) clearLeft(ctx context.Context, teamKey string, repo *worktree.Repo, row ledger.Member) {
	left, err := s.left(ctx, row)
	if err != nil {
		s.Log.Warn("read members", "err", err)
		return
	}
	for _, m := range left {
		if ctx.Err() != nil {
			return
		}
		_, err := repo.Remove(ctx, m.Worktree, worktree.RemoveIn{DeleteBranch: OwnBranch(teamKey, m.Branch)})
		if err != nil {
			s.Log.Info("keep a worktree", "of", m.Name, "path", m.Worktree, "why", err)
		}
	}
}

// BranchName returns the branch of a member: the requested one, or one of the team.
func BranchName(teamKey, name, asked string) string {
	if asked != "" {
		return asked
	}
	return branchRoot(teamKey) + name
}

// branchRoot returns the prefix of all branches that a team creates.
func branchRoot(teamKey string) string { return "teamctl/" + teamKey + "/" }

// OwnBranch reports whether the team created the branch, by its name. Other branches existed
// before the member and must not be deleted.
func OwnBranch(teamKey, branch string) bool { return strings.HasPrefix(branch, branchRoot(teamKey)) }

// Repair undoes or completes the unfinished work of killed processes in the team's repositories;
// own is the team's own.
func (s Trees) Repair(ctx context.Context, own string) {
	more, err := RepositoriesOf(ctx, s.Ledger)
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("read repositories", "err", err)
	}
	paths := slices.Collect(maps.Values(more))
	if own != "" {
		paths = append(paths, own)
	}
	for _, path := range paths {
		repo, err := worktree.OpenRepo(ctx, path)
		if err == nil {
			var notes []string
			notes, err = repo.Repair(ctx)
			for _, n := range notes {
				s.Log.Info("repaired", "what", n)
			}
		}
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("repair worktrees", "repo", path, "err", err)
		}
	}
}
