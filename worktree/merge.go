package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// MergeResult is the result of Merge.
type MergeResult struct {
	Before    string   `json:"before"`              // previous HEAD
	Head      string   `json:"head"`                // new HEAD
	Merged    []string `json:"merged,omitempty"`    // commits that were merged, in order
	Contained []string `json:"contained,omitempty"` // commits that HEAD already contained
	Conflicts []string `json:"conflicts,omitempty"` // files, with reason merge_conflict
}

// Merge merges commits (anything that names one) into the worktree at path, one
// after the other, by fast-forward where possible. It merges all or none: after
// a conflict, another failure or the end of ctx the worktree is unchanged.
// Untracked files are allowed, changes of tracked files are not. Hooks do not
// run.
//
// Errors: main_worktree (denied); unknown_revision (not found); worktree_dirty,
// unmerged_files, operation_in_progress, merge_conflict (with the files),
// merge_refused, lock_file (conflict).
func (r *Repo) Merge(ctx context.Context, path string, commits []string, message string) (MergeResult, error) {
	return r.MergeAfter(ctx, path, commits, message, func() error { return nil })
}

// MergeAfter is Merge, and calls before if there is something to merge.
func (r *Repo) MergeAfter(ctx context.Context, path string, commits []string, message string, before func() error) (MergeResult, error) {
	var res MergeResult
	t, err := r.tree(path)
	if err == nil {
		err = t.notMain("merge")
	}
	if err != nil {
		return res, err
	}
	want := make([]string, len(commits))
	for i, c := range commits {
		if want[i], err = r.tipOf(ctx, c); err != nil {
			return res, err
		}
	}
	contained := map[string]bool{}
	for _, c := range want {
		// A failure has its answer below.
		contained[c], _ = isAncestor(ctx, t.readCall(), c, "HEAD")
	}
	if !slices.ContainsFunc(want, func(c string) bool { return !contained[c] }) {
		head, err := t.made(ctx)
		return MergeResult{Before: head, Head: head, Contained: want}, err
	}
	if err := before(); err != nil {
		return res, err
	}
	st, err := t.status(ctx)
	if err != nil {
		return res, err
	}
	res.Before, res.Head = st.Head, st.Head
	switch {
	case st.Unmerged > 0:
		return res, conflict(team.ReasonUnmerged, "%s has conflicts: %s", t.path, summary(st)).
			WithHint("resolve them, or git -C " + t.path + " " + orMerge(st.Operation) + " --abort")
	case st.Operation != "":
		return res, underWay(t, st.Operation)
	case st.Staged+st.Unstaged > 0:
		return res, conflict(team.ReasonWorktreeDirty, "%s has uncommitted changes: %s", t.path, summary(st)).
			WithHint("commit them first")
	case st.Head == "":
		return res, invalid(team.ReasonUnbornHead, "the worktree %s has no commit yet", t.path)
	}
	env, err := t.author(ctx, t.call().env, "", "")
	if err != nil {
		return res, err
	}
	note := doing{Kind: doingMerge, Head: st.Head, Commits: want}
	for _, c := range st.Changes {
		if c.Work == "?" {
			note.Untracked = append(note.Untracked, c.Path)
		}
	}
	done, err := t.begin(note)
	if err != nil {
		return res, err
	}
	r.step("merge-begun")
	for _, c := range want {
		in, err := contained[c], error(nil)
		if !in && len(res.Merged) > 0 {
			in, err = isAncestor(ctx, t.readCall(), c, "HEAD")
		}
		if err == nil && in {
			res.Contained = append(res.Contained, c)
			continue
		}
		if err == nil {
			res.Conflicts, err = t.mergeOne(ctx, c, message, env)
		}
		if err != nil {
			res.Merged = nil
			back, whole := r.backTo(ctx, t, st, c, err)
			if whole {
				done() // otherwise the record stays for Recover
			}
			return res, back
		}
		res.Merged = append(res.Merged, c)
		r.step("merged-one")
	}
	done()
	res.Head, err = t.made(ctx)
	return res, err
}

// mergeOne merges one commit. If the merge cannot be completed it leaves it
// unfinished.
func (t tree) mergeOne(ctx context.Context, commit, message string, env []string) (conflicts []string, err error) {
	c := t.call("merge", "--quiet", "--no-edit", "--no-stat", "--ff", "--commit",
		"--no-squash", "--no-log", "--no-verify-signatures", "--no-rerere-autoupdate")
	if message != "" {
		c.args = append(c.args, "-m", message)
	}
	c.args = append(c.args, commit)
	c.env, c.conf = env, []string{"merge.autoStash=false", "rerere.enabled=false", "merge.renames=true"}
	_, err = git(ctx, c)
	if exitStatus(err) < 0 {
		return nil, err // nil, coded, or killed by a signal
	}
	out, listErr := t.read(ctx, "diff", "--name-only", "--diff-filter=U", "-z")
	if listErr != nil {
		return nil, failed("list the conflicts in "+t.path, listErr)
	}
	if conflicts = lines(out, 0); len(conflicts) > 0 {
		return conflicts, conflict(team.ReasonMergeConflict, "merging %s into %s conflicts in %s", short(commit), t.path, strings.Join(conflicts, ", ")).
			WithHint("git -C " + t.path + " merge " + short(commit) + ", then resolve and commit")
	}
	if locked := lockFile(t.locks()); locked != nil {
		return nil, locked
	}
	return nil, team.Errorf(team.CodeConflict, "git refuses to merge %s into %s: %w", short(commit), t.path, err).
		WithReason(team.ReasonMergeRefused)
}

// backTo restores the worktree to its state before the merge, and returns the
// reason. --abort and --keep undo what the merge wrote and refuse to overwrite
// anything else. A git that was killed while writing files leaves some missing
// or new without a record of it; backTo restores them after a snapshot, because
// an agent may have written there at the same time.
func (r *Repo) backTo(ctx context.Context, t tree, before team.WorktreeStatus, commit string, why error) (told error, whole bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	err := func() error {
		if _, err := os.Lstat(filepath.Join(t.dir, "MERGE_HEAD")); err == nil {
			if _, err := git(ctx, t.call("merge", "--abort")); err != nil {
				return err
			}
		}
		if cut(why) {
			if err := r.sweepMerge(ctx, t, before, commit); err != nil {
				return err
			}
		}
		head, err := t.head(ctx)
		if err != nil || head == before.Head {
			return err
		}
		_, err = git(ctx, t.call("reset", "--quiet", "--keep", before.Head))
		return err
	}()
	if err != nil {
		return team.Errorf(team.CodeOf(why), "%w (and %s could not be restored to %s: %v)", why, t.path, before.Head, err).
			WithReason(team.ReasonOf(why)).WithHint("git -C " + t.path + " merge --abort"), false
	}
	return why, true
}

// cut reports whether git was ended from outside.
func cut(err error) bool {
	var g *gitError
	if errors.As(err, &g) {
		return g.status < 0
	}
	switch team.ReasonOf(err) {
	case team.ReasonTimeout, team.ReasonCanceled, team.ReasonDiskFull:
		return true
	}
	return false
}

// sweepMerge undoes a merge that was killed while it wrote. The tracked files
// were clean before.
func (r *Repo) sweepMerge(ctx context.Context, t tree, before team.WorktreeStatus, commit string) error {
	st, err := t.status(ctx)
	if err != nil {
		return err
	}
	was := map[string]bool{}
	for _, c := range before.Changes {
		was[c.Path] = true
	}
	touched, err := t.filesOf(ctx, before.Head, commit)
	if err != nil {
		return err
	}
	mine := map[string]bool{}
	for _, p := range touched {
		mine[p] = true
	}
	var tracked bool
	var added []string
	for _, c := range st.Changes {
		switch {
		case c.Work != "?":
			tracked = true
		case !was[c.Path] && mine[c.Path]:
			added = append(added, c.Path)
		}
	}
	if !tracked && len(added) == 0 {
		return nil
	}
	sha, err := r.snapshot(ctx, t, true, "an interrupted merge")
	if err != nil {
		return err
	}
	if _, err := r.rescueRef(ctx, "teamctl", "merge", sha); err != nil {
		return err
	}
	if _, err := git(ctx, t.call("reset", "--quiet", "--hard", st.Head)); err != nil {
		return err
	}
	for _, p := range added {
		if err := os.Remove(filepath.Join(t.path, filepath.FromSlash(p))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func short(sha string) string { return sha[:min(12, len(sha))] }
