package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// Delete removes a team: it refuses while members live, programs that have joined
// have not left, and while a worktree has
// work that is nowhere else. With force members are ended first and unsaved work
// is snapshotted to a rescue ref, which is told. Branches with commits of their
// own are always kept. A delete that was cut short can be repeated.
func (e *Env) Delete(ctx context.Context, c Caller, key string, force bool) (TeamDeleteOut, error) {
	out := TeamDeleteOut{TeamName: key}
	t, err := e.Open(ctx, key)
	if err != nil {
		return out, err
	}
	if err := t.may(ctx, c, OpTeamDelete); err != nil {
		return out, errors.Join(err, t.Close())
	}
	err = t.quiesce(ctx, c, force)
	var trees []treesAt
	if err == nil {
		trees, err = t.trees(ctx)
	}
	var boot supervisor.Bootstrap
	if err == nil {
		boot, err = t.Bootstrap(ctx)
	}
	err = errors.Join(err, t.Close())
	if err != nil {
		return out, firstCoded(err)
	}
	// From here no supervisor can start: we hold its lock.
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	lock, err := filelock.Lock(wait, t.Layout.SupervisorLock())
	if err != nil {
		return out, team.Errorf(team.CodeTimeout, "the supervisor of %s does not leave: %w", key, err)
	}
	defer func() { _ = lock.Unlock() }()
	more, others, err := unclaimed(ctx, t.Layout, trees)
	if err != nil {
		return out, err
	}
	trees = append(trees, more...)
	if !force {
		if err := looseWork(ctx, trees); err != nil {
			return out, err
		}
		if len(others) > 0 {
			return out, team.Errorf(team.CodeConflict, "no worktree of the team, and in its directory: %s", strings.Join(others, ", ")).
				WithReason("worktree_dirty").WithHint("move it away, or teamctl delete --force (which moves it to " + filepath.Join(e.Home.Dir, "kept") + ")")
		}
	}
	for _, at := range trees {
		if err := t.removeTrees(ctx, at, boot, force, &out); err != nil {
			return out, err
		}
	}
	kept, err := e.keepLeft(t.Layout)
	out.Notes = append(out.Notes, kept...)
	if err != nil {
		return out, err
	}
	if err := e.removeDir(t.Layout); err != nil {
		return out, err
	}
	out.Success = true
	out.Message = fmt.Sprintf("Cleaned up directories and worktrees for team %q", key)
	return out, nil
}

// quiesce sees to it that nothing of the team runs: no member, no private tmux
// server, no supervisor.
func (t *Team) quiesce(ctx context.Context, c Caller, force bool) error {
	all, err := t.Ledger.Members(ctx, true)
	if err != nil {
		return err
	}
	owed, err := t.owed(ctx)
	if err != nil {
		return err
	}
	if pid, _ := t.supervisorPID(); pid == 0 && len(all) <= 1 && !owed {
		return nil // nothing was ever started
	}
	s, err := t.supervisor(ctx)
	if err != nil {
		return err
	}
	if force {
		if _, err := s.StopMembers(ctx, supervisor.StopIn{Force: true, Reason: "team deleted", From: c.Name}); err != nil {
			return err
		}
	}
	st, err := s.Status(ctx)
	if err != nil {
		return err
	}
	var active []string
	for _, m := range st.Members {
		if m.Observed.Alive() || m.Desired == team.WantRunning && !m.Observed.Terminal() {
			active = append(active, m.Name)
		}
	}
	hint := "teamctl shutdown, or teamctl delete --force"
	if !force { // nobody sees whether a program that has joined still works
		for _, m := range all {
			if m.RemovedAt == 0 && m.Spec.Agent == ledger.AgentExternal {
				active = append(active, m.Name)
				hint = "teamctl leave " + m.Name + " for one that has joined; " + hint
			}
		}
	}
	if len(active) > 0 {
		return team.Errorf(team.CodeConflict, "Cannot cleanup team with %d active member(s): %s. Use requestShutdown first.",
			len(active), strings.Join(active, ", ")).WithReason("members_active").WithHint(hint)
	}
	return s.Quit(ctx, true)
}

// treesAt are the members that have a worktree of the repository at root.
type treesAt struct {
	root    string
	members []ledger.Member
	stray   bool // no member's, though it stands in the team's directory
}

// trees are the members, past ones too, that have a worktree of their own.
func (t *Team) trees(ctx context.Context) ([]treesAt, error) {
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return nil, err
	}
	all, err := t.Ledger.Members(ctx, true)
	if err != nil {
		return nil, err
	}
	var out []treesAt
	for _, m := range all {
		if m.Worktree == "" || m.Spec.WorktreeMode != "own" {
			continue
		}
		root, err := supervisor.RepoPath(ctx, t.Ledger, row, m.Spec.Repo)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(out, func(a treesAt) bool { return a.root == root })
		if i < 0 {
			i, out = len(out), append(out, treesAt{root: root})
		}
		out[i].members = append(out[i].members, m)
	}
	return out, nil
}

// looseWork refuses while a worktree has work that is not committed. All are looked
// at before the first is removed.
func looseWork(ctx context.Context, trees []treesAt) error {
	var bad []error
	for _, at := range trees {
		repo, err := worktree.OpenRepo(ctx, at.root)
		if err != nil {
			return err
		}
		paths := make([]string, len(at.members))
		for i, m := range at.members {
			paths[i] = m.Worktree
		}
		list, errs := repo.StatusAll(ctx, paths)
		for i, m := range at.members {
			switch {
			case team.ReasonOf(errs[i]) == worktree.ReasonPathMissing: // nothing to lose
			case errs[i] != nil:
				bad = append(bad, fmt.Errorf("worktree of %s: %w", m.Name, errs[i]))
			case !list[i].Clean():
				bad = append(bad, team.Errorf(team.CodeConflict, "worktree of %s has work that is not committed (%s)", m.Name, m.Worktree))
			}
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return team.Errorf(team.CodeConflict, "%w", joinErrors(bad)).WithReason("worktree_dirty").
		WithHint("commit or move that work, or teamctl delete --force (which keeps a snapshot)")
}

// removeTrees removes the worktrees of one repository.
func (t *Team) removeTrees(ctx context.Context, at treesAt, boot supervisor.Bootstrap, force bool, out *TeamDeleteOut) error {
	repo, err := worktree.OpenRepo(ctx, at.root)
	if err != nil {
		if force {
			return nil // the repository is gone: what is in its worktrees is moved away
		}
		return err
	}
	defer repo.Wait()
	for _, m := range at.members {
		if !at.stray {
			if note := t.teardown(ctx, repo, boot, m); note != "" {
				out.Notes = append(out.Notes, note)
			}
		}
		own := supervisor.OwnBranch(t.Layout.Key, m.Branch)
		r, err := repo.Remove(ctx, m.Worktree, worktree.RemoveIn{Force: force, Team: t.Layout.Key, Agent: m.Name, DeleteBranch: own})
		if err != nil {
			return fmt.Errorf("remove worktree of %s: %w", m.Name, err)
		}
		out.Removed = append(out.Removed, m.Worktree)
		out.Notes = append(out.Notes, r.Notes...)
		if r.RescueRef != "" {
			out.Rescued = append(out.Rescued, r.RescueRef)
		}
		if r.BranchKept != "" && !own {
			r.BranchKept = "it was there before " + m.Name
		}
		if r.BranchKept != "" {
			out.Kept = append(out.Kept, KeptBranch{Member: m.Name, Branch: r.Branch, Head: r.Head, Why: r.BranchKept})
		}
	}
	return nil
}

// removeDir takes the team's directory out of the way in one step and then
// removes it, with its sockets.
func (e *Env) removeDir(l team.Layout) error {
	trash := filepath.Join(e.Home.TeamsDir(), deleted+l.Key+"-"+team.NewUUID()[:8])
	if err := os.Rename(l.Dir, trash); err != nil {
		return team.Errorf(team.CodeUnavailable, "remove team directory: %w", err)
	}
	if err := e.rebuildRegistry(); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(trash), os.RemoveAll(l.Runtime()))
}
