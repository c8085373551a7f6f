package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

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
	return r.mergeAfter(ctx, path, commits, message, func(ctx context.Context, t tree) (team.WorktreeStatus, error) { return t.status(ctx) })
}

// MergeSaving is Merge, and takes a checkpoint before if there is something to merge.
func (r *Repo) MergeSaving(ctx context.Context, path string, commits []string, message, teamKey, agent string) (MergeResult, error) {
	if err := checkOwner(teamKey, agent); err != nil {
		return MergeResult{}, err
	}
	return r.mergeAfter(ctx, path, commits, message, func(ctx context.Context, t tree) (team.WorktreeStatus, error) {
		began := time.Now()
		st, err := t.status(ctx)
		if err != nil {
			return st, err
		}
		_, fresh, err := r.checkpoint(ctx, t, st, began, teamKey, agent, "before a merge", nil)
		if err != nil || !fresh && st.Clean() {
			return st, err // no git has been run since
		}
		return t.status(ctx)
	})
}

// mergeAfter is Merge with the status that before returns, which is called if there is
// something to merge.
func (r *Repo) mergeAfter(ctx context.Context, path string, commits []string, message string, before func(context.Context, tree) (team.WorktreeStatus, error)) (MergeResult, error) {
	var res MergeResult
	t, err := r.tree(path)
	if err == nil {
		err = t.notMain("merge")
	}
	if err != nil {
		return res, err
	}
	want, contained, err := r.resolveFor(ctx, t, commits)
	if err != nil {
		return res, err
	}
	if !slices.ContainsFunc(want, func(c string) bool { return !contained[c] }) {
		head, err := t.made(ctx)
		return MergeResult{Before: head, Head: head, Contained: want}, err
	}
	st, err := before(ctx, t)
	if err != nil {
		return res, err
	}
	res.Before, res.Head = st.Head, st.Head
	switch {
	case st.Unmerged > 0:
		return res, conflict(team.ReasonUnmerged, "%s has conflicts: %s", t.path, summary(st)).
			WithHint("resolve them, or " + gitHint(t.path, orMerge(st.Operation), "--abort"))
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

// resolveFor resolves commits, and finds those that HEAD of a worktree contains.
func (r *Repo) resolveFor(ctx context.Context, t tree, commits []string) (want []string, contained map[string]bool, err error) {
	missing, known := t.missing(ctx, commits)
	contained = map[string]bool{}
	for _, c := range commits {
		in := known && len(missing) == 0
		ask := !in && !missing[c]
		if ask && known { // a failure has its answer in the merge, here and below
			in, _ = isAncestor(ctx, t.readCall(), c, "HEAD")
		}
		if ask && !in {
			if c, err = r.tipOf(ctx, c); err != nil {
				return nil, nil, err
			}
			if !known {
				in, _ = isAncestor(ctx, t.readCall(), c, "HEAD")
			}
		}
		contained[c] = in
		want = append(want, c)
	}
	return want, contained, nil
}

// missingMost bounds the commits that missing lists.
const missingMost = 1000

// missing lists commits that some commits contain and HEAD does not. None means that HEAD
// contains all of them. A commit that is not among others may be the name of a tag, or too
// far down. known is false if the commits are not given by their names or git does not know
// one of them.
func (t tree) missing(ctx context.Context, commits []string) (list map[string]bool, known bool) {
	if len(commits) == 0 || slices.ContainsFunc(commits, func(c string) bool { return !isObjectID(c) }) {
		return nil, false
	}
	args := append([]string{"rev-list", "--max-count=" + strconv.Itoa(missingMost)}, commits...)
	out, err := t.read(ctx, append(args, "^HEAD", "--")...)
	list = map[string]bool{}
	for _, c := range lines(out, '\n') {
		list[c] = true
	}
	return list, err == nil
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
			WithHint(gitHint(t.path, "merge", short(commit)) + ", then resolve and commit")
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
			WithReason(team.ReasonOf(why)).WithHint(gitHint(t.path, "merge", "--abort")), false
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
