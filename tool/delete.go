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
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// DeleteIn has the options for deleting a team.
type DeleteIn struct {
	Force bool   // end members first, and remove worktrees with work in them after a snapshot
	Late  func() // called once if ctx ends after the removal has begun, which completes nonetheless; may be nil
}

// Delete deletes a team. It refuses while members are running, programs that have joined have not
// left, a merge is in progress, or a worktree has work that exists nowhere else. With force it
// ends members first and saves unsaved work in a rescue ref, which it reports. It always keeps
// branches with commits of their own. An interrupted delete can be repeated; of a team
// that was deleted before, that is the Outcome.
//
// If ctx ends before the first worktree is removed, no file of the team has changed; with force
// its members may have been ended, which the error says. After that the deletion completes
// regardless of ctx.
func (e *Env) Delete(ctx context.Context, c Caller, key string, in DeleteIn) (TeamDeleteOut, error) {
	out := TeamDeleteOut{TeamName: key}
	ended, err := e.delete(ctx, c, key, in, &out)
	if team.ReasonOf(err) == team.ReasonTeamNotFound {
		if was, rerr := e.wasDeleted(key); rerr == nil && was {
			return DeletedBefore(key), nil
		}
	}
	if ended && err != nil && ctx.Err() != nil && !out.begun {
		err = team.Errorf(team.CodeUnavailable, "members of team %s were asked to end, nothing was deleted (teamctl start brings them back): %w", key, context.Cause(ctx)).
			WithReason(team.ReasonMembersEnded).WithHint("teamctl delete " + key + " --force")
	}
	return out, err
}

// delete does the work of Delete. It reports whether members were asked to end.
func (e *Env) delete(ctx context.Context, c Caller, key string, in DeleteIn, out *TeamDeleteOut) (ended bool, err error) {
	force := in.Force
	t, err := e.Open(ctx, key)
	if err != nil {
		return ended, err
	}
	if err := t.may(ctx, c, OpTeamDelete); err != nil {
		return ended, errors.Join(err, t.Close())
	}
	release := func() {}
	defer func() { release() }()
	if !force { // otherwise merging members are ended first
		release, err = t.holdMerges(ctx, force, out)
	}
	if err == nil {
		ended, err = t.quiesce(ctx, c, force)
	}
	if err == nil && force {
		release, err = t.holdMerges(ctx, force, out)
	}
	var trees []treesAt
	if err == nil {
		trees, err = t.trees(ctx)
	}
	var boot team.Bootstrap
	if err == nil {
		boot, err = t.Bootstrap(ctx)
	}
	err = errors.Join(err, t.Close())
	if err != nil {
		return ended, firstCoded(err)
	}
	// From here on no supervisor can start, since this process holds its lock.
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	lock, err := filelock.Lock(wait, t.Layout.SupervisorLock())
	if err != nil {
		return ended, team.Errorf(team.CodeTimeout, "the supervisor of %s does not leave: %w", key, err)
	}
	defer func() { _ = lock.Unlock() }()
	more, others, err := unclaimed(ctx, t.Layout, trees)
	if err != nil {
		return ended, err
	}
	trees = append(trees, more...)
	if err := checkTrees(ctx, t.Layout.Key, trees, force); err != nil {
		return ended, err
	}
	if len(others) > 0 && !force {
		return ended, team.Errorf(team.CodeConflict, "no worktree of the team, and in its directory: %s", strings.Join(others, ", ")).
			WithReason(team.ReasonWorktreeDirty).WithHint("move it away, or teamctl delete --force (which moves it to " + e.keptDir() + ")")
	}
	if err := ctx.Err(); err != nil {
		return ended, err
	}
	// The point of no return. There is no deadline: a large worktree takes time, each command has
	// its own limit, and a killed deletion can be repeated.
	out.begun = true
	if in.Late != nil {
		defer context.AfterFunc(ctx, in.Late)()
	}
	ctx = context.WithoutCancel(ctx)
	for _, at := range trees {
		if err := t.removeTrees(ctx, at, boot, force, out); err != nil {
			return ended, err
		}
	}
	for _, keep := range []func(team.Layout) ([]string, error){e.keepLeft, e.keepDamaged} {
		kept, err := keep(t.Layout)
		out.Notes = append(out.Notes, kept...)
		if err != nil {
			return ended, err
		}
	}
	_ = e.noteDeleted(ctx, key) // a full disk must not keep anybody from deleting
	if err := e.removeDir(t.Layout); err != nil {
		return ended, err
	}
	out.Success = true
	out.Message = fmt.Sprintf("Cleaned up directories and worktrees for team %q", key)
	return ended, nil
}

// quiesce ensures that nothing of the team is running: no member, no private tmux server, no
// supervisor. It reports whether members were asked to end.
func (t *Team) quiesce(ctx context.Context, c Caller, force bool) (ended bool, err error) {
	all, err := t.Ledger.Members(ctx, true)
	if err != nil {
		return ended, err
	}
	owed, err := t.owed(ctx)
	if err != nil {
		return ended, err
	}
	if pid, _ := t.supervisorPID(); pid == 0 && len(all) <= 1 && !owed {
		return false, nil // nothing was ever started
	}
	s, err := t.supervisor(ctx)
	if err != nil {
		return ended, err
	}
	if force && ctx.Err() == nil {
		ended = slices.ContainsFunc(all, func(m ledger.Member) bool {
			return m.RemovedAt == 0 && m.Name != team.LeadName && (m.Desired == team.WantRunning || m.Observed.Alive())
		})
		if _, err := s.StopMembers(ctx, team.StopRequest{Force: true, Reason: "team deleted", From: c.Name}); err != nil {
			return ended, err
		}
	}
	st, err := s.Status(ctx)
	if err != nil {
		return ended, err
	}
	var active []string
	var unknown []error
	for _, m := range st.Members {
		if state.Unknown(m.Member) {
			unknown = append(unknown, fmt.Errorf("%s: %s", m.Name, m.Reason))
		}
		if m.Observed.Alive() || m.Desired == team.WantRunning && !m.Observed.Terminal() {
			active = append(active, m.Name)
		}
	}
	hint := "teamctl shutdown && teamctl delete"
	if !force { // it cannot be observed whether a program that has joined still works
		for _, m := range all {
			if m.RemovedAt == 0 && team.KindOf(m.Spec.Agent).External {
				active = append(active, m.Name)
				hint = "teamctl leave " + m.Name + " for one that has joined; " + hint
			}
		}
	}
	if len(unknown) > 0 {
		return ended, team.Errorf(team.CodeConflict, "%d member(s) may live and cannot be looked at: %w", len(unknown), joinErrors(unknown)).
			WithReason(team.ReasonMembersActive).WithHint("teamctl delete " + t.Layout.Key + " --force ends what can be found of them and keeps their files")
	}
	if len(active) > 0 {
		return ended, team.Errorf(team.CodeConflict, "Cannot cleanup team with %d active member(s): %s",
			len(active), strings.Join(active, ", ")).WithReason(team.ReasonMembersActive).WithHint(hint)
	}
	return ended, s.Quit(ctx, true)
}

// treesAt has the members with a worktree of the repository at root.
type treesAt struct {
	root    string
	members []ledger.Member
	stray   bool // belongs to no member, though it is in the team's directory
}

// trees returns all members, including former ones, that have a worktree of their own.
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
	seen := map[string]bool{} // a reused name has the worktree of the former member
	for _, m := range slices.Backward(all) {
		if m.Worktree == "" || m.Spec.WorktreeMode != "own" || seen[m.Worktree] {
			continue
		}
		seen[m.Worktree] = true
		root, err := trees.RepoPath(ctx, t.Ledger, row, m.Spec.Repo)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(out, func(a treesAt) bool { return a.root == root })
		if i < 0 {
			i, out = len(out), append(out, treesAt{root: root})
		}
		out[i].members = append(out[i].members, m)
	}
	for i := range out {
		slices.Reverse(out[i].members)
	}
	return out, nil
}

// checkTrees returns an error if a worktree cannot be removed. It inspects all before the first is
// removed.
func checkTrees(ctx context.Context, key string, trees []treesAt, force bool) error {
	var bad []error
	for _, at := range trees {
		repo, err := worktree.OpenRepo(ctx, at.root)
		if force && repoGone(err) {
			continue
		}
		if err != nil {
			return err
		}
		paths := make([]string, len(at.members))
		for i, m := range at.members {
			paths[i] = m.Worktree
		}
		// The name of a snapshot is validated when the snapshot is taken.
		errs := repo.CheckRemove(ctx, paths, worktree.RemoveIn{Force: force, Team: key, Agent: "any"})
		for i, m := range at.members {
			if errs[i] != nil {
				bad = append(bad, fmt.Errorf("worktree of %s: %w", m.Name, errs[i]))
			}
		}
	}
	switch {
	case len(bad) == 0:
		return nil
	case force:
		return team.Errorf(team.CodeConflict, "nothing was removed: %w", joinErrors(bad)).
			WithReason(team.ReasonOf(bad[0])).WithHint(team.HintOf(bad[0]))
	}
	hint := "commit or move that work, or teamctl delete --force (which keeps a snapshot)"
	for _, err := range bad {
		switch team.ReasonOf(err) {
		case team.ReasonWorktreeDirty, team.ReasonWorktreeBusy, team.ReasonLockFile:
		default:
			hint = team.HintOf(err) // force would fail as well
		}
	}
	return team.Errorf(team.CodeConflict, "%w", joinErrors(bad)).WithReason(team.ReasonWorktreeDirty).WithHint(hint)
}

// repoGone reports whether a repository no longer exists.
func repoGone(err error) bool {
	return team.IsCode(err, team.CodeInvalid) || team.IsCode(err, team.CodeNotFound)
}

// removeTrees removes the worktrees of one repository.
func (t *Team) removeTrees(ctx context.Context, at treesAt, boot team.Bootstrap, force bool, out *TeamDeleteOut) error {
	repo, err := worktree.OpenRepo(ctx, at.root)
	if force && repoGone(err) {
		return nil // the content of its worktrees is moved away
	}
	if err != nil {
		return err
	}
	defer repo.Wait()
	for _, m := range at.members {
		if !at.stray {
			if note := t.teardown(ctx, repo, boot, m); note != "" {
				out.Notes = append(out.Notes, note)
			}
		}
		own := trees.OwnBranch(t.Layout.Key, m.Branch)
		// Only a teardown has changed anything since checkTrees.
		checked := at.stray || len(boot.Of(m.Spec.Repo).Teardown) == 0
		r, err := repo.Remove(ctx, m.Worktree, worktree.RemoveIn{Force: force, Team: t.Layout.Key, Agent: m.Name, DeleteBranch: own, Checked: checked})
		if err != nil {
			return out.cutShort(fmt.Errorf("remove worktree of %s: %w", m.Name, err))
		}
		out.Removed = append(out.Removed, m.Worktree)
		out.Notes = append(out.Notes, r.Notes...)
		if r.RescueRef != "" {
			out.Rescued = append(out.Rescued, r.RescueRef)
			out.Restore = append(out.Restore, restoreCommand(repo, r.RescueRef))
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

// restoreCommand returns the command that restores a saved state from any directory.
func restoreCommand(repo *worktree.Repo, ref string) string {
	return "teamctl rescue restore " + strings.TrimPrefix(ref, "refs/teamctl/") + " --repo " + team.ShellQuote(repo.Root())
}

// cutShort adds what was saved so far to the error of a failed deletion: programs see only the
// error.
func (out *TeamDeleteOut) cutShort(err error) error {
	if len(out.Rescued) == 0 {
		return err
	}
	return fmt.Errorf("%w; saved before that: %s", err, strings.Join(out.Rescued, ", "))
}

// removeDir removes the team's sockets, renames its directory in one step and then removes it. From
// the rename on the name is free: the sockets are then those of another team.
func (e *Env) removeDir(l team.Layout) error {
	if err := os.RemoveAll(l.Runtime()); err != nil {
		return team.Errorf(team.CodeUnavailable, "remove the sockets of the team: %w", err)
	}
	trash := filepath.Join(e.Home.TeamsDir(), deleted+l.Key+"-"+team.NewUUID()[:8])
	if err := os.Rename(l.Dir, trash); err != nil {
		return team.Errorf(team.CodeUnavailable, "remove team directory: %w", err)
	}
	e.reached("renamed")
	if err := e.rebuildRegistry(); err != nil {
		return err
	}
	return os.RemoveAll(trash)
}
