package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// gitPatience is how long Recover waits for a git that outlived its caller.
const gitPatience = 30 * time.Second

// Recover makes a member's own worktree usable again after the processes in it,
// git included, were killed: it removes lock files of dead processes and undoes
// an interrupted operation back to the last commit. Uncommitted work stays if
// it can be distinguished from what the operation wrote; otherwise Recover
// first saves the complete state to a rescue ref, which the notes name. A
// worktree in order is unchanged and costs one git status.
//
// Errors: main_worktree (denied); worktree_busy (conflict): a git is still
// running there; those of Status.
func (r *Repo) Recover(ctx context.Context, path, teamKey, agent string) (notes []string, err error) {
	if err := checkOwner(teamKey, agent); err != nil {
		return nil, err
	}
	t, err := r.tree(path)
	if err == nil {
		err = t.notMain("recover")
	}
	if err != nil {
		return nil, err
	}
	if err := t.quiet(ctx); err != nil {
		return nil, err
	}
	l, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Unlock() }()
	was, cutShort, err := t.readDoing()
	if err != nil {
		return nil, err
	}
	locked, err := r.dropLocks(ctx, t)
	if err != nil {
		return nil, err
	}
	notes = append(notes, locked...)
	r.step("unlocked")
	st, err := t.status(ctx)
	if err != nil {
		return notes, err
	}
	why := t.undone(st, was, cutShort, len(locked) > 0)
	if why == "" {
		if was.Kind == doingRefresh && len(was.Commits) == 1 {
			if _, err := t.contains(ctx, st.Head, was.Commits[0]); err != nil {
				return notes, err
			}
		}
		t.forget()
		return notes, nil
	}
	ref := ""
	if !st.Clean() {
		sha, err := r.snapshot(ctx, t, true, why)
		if err != nil {
			return notes, err
		}
		if ref, err = r.rescueRef(ctx, teamKey, agent, sha); err != nil {
			return notes, err
		}
		r.step("recover-rescued")
	}
	if err := r.undoCut(ctx, t, st, was); err != nil {
		return notes, failed("undo "+why+" in "+t.path, err)
	}
	t.forget()
	note := "undid " + why + " in " + t.path
	if ref != "" {
		note += "; everything that was there is in " + ref
	}
	return append(notes, note), nil
}

// undone describes what must be undone, or returns "" if the files can stay as
// they are.
func (t tree) undone(st team.WorktreeStatus, was doing, cutShort, locked bool) string {
	switch {
	case cutShort && was.Kind != doingCommit:
		if st.Clean() && was.Kind != doingRestore {
			return "" // it had not started, or had finished
		}
		return "an interrupted " + was.Kind
	case st.Operation == "merge" && st.Unmerged == 0 && (!locked || cutShort):
		return "" // resolved by the agent, perhaps about to be concluded; Commit does that
	case st.Operation != "":
		return "an unfinished " + st.Operation
	case st.Unmerged > 0:
		return "unresolved conflicts"
	case cutShort, !locked:
		return "" // git add and git commit write no working tree files
	}
	// A git that the agent started. When git updates a file it deletes it
	// before it writes it: a missing file shows that git was writing files.
	for _, c := range st.Changes {
		if c.Work == "D" {
			return "an interrupted git operation"
		}
	}
	return ""
}

// undoCut resets the worktree to its last commit, after a snapshot.
func (r *Repo) undoCut(ctx context.Context, t tree, st team.WorktreeStatus, was doing) error {
	switch st.Operation {
	case "rebase":
		if err := t.leaveRebase(ctx); err != nil {
			return err
		}
	case "bisect":
		if _, err := git(ctx, t.call("bisect", "reset")); err != nil {
			return err
		}
	case "":
	default:
		// Keeps unstaged changes in files that the operation did not touch.
		if _, err := git(ctx, t.call("reset", "--quiet", "--merge")); err == nil {
			break
		} else if exitStatus(err) < 0 {
			return err
		}
	}
	now, err := t.status(ctx)
	if err != nil {
		return err
	}
	clean := now.Staged+now.Unstaged+now.Unmerged == 0 && now.Operation == ""
	// This package's merge started with clean files, so it wrote whatever is
	// changed now.
	if !clean && (was.Kind != "" || now.Unmerged > 0 || now.Operation != "" || missing(now) || st.Operation == "") {
		if _, err := git(ctx, t.call("reset", "--quiet", "--hard")); err != nil {
			return t.lockedOr("reset "+t.path, err)
		}
		for _, name := range []string{"MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD", "AUTO_MERGE"} {
			if err := os.Remove(filepath.Join(t.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return r.dropAdded(ctx, t, now, was)
}

func missing(st team.WorktreeStatus) bool {
	for _, c := range st.Changes {
		if c.Work == "D" {
			return true
		}
	}
	return false
}

// dropAdded deletes the files that an interrupted merge added: untracked now,
// absent before, and part of the merged commits.
func (r *Repo) dropAdded(ctx context.Context, t tree, now team.WorktreeStatus, was doing) error {
	if was.Kind != doingMerge {
		return nil
	}
	before := map[string]bool{}
	for _, p := range was.Untracked {
		before[p] = true
	}
	merged := map[string]bool{}
	for _, c := range was.Commits {
		files, err := t.filesOf(ctx, was.Head, c)
		if err != nil {
			return err
		}
		for _, p := range files {
			merged[p] = true
		}
	}
	for _, c := range now.Changes {
		if c.Work != "?" || before[c.Path] || !merged[c.Path] {
			continue
		}
		if err := os.Remove(filepath.Join(t.path, filepath.FromSlash(c.Path))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// leaveRebase returns to the unchanged branch that was being rebased.
func (t tree) leaveRebase(ctx context.Context) error {
	if _, err := git(ctx, t.call("rebase", "--abort")); err == nil || exitStatus(err) < 0 {
		return err
	}
	// Part of its state is missing. The branch itself moves only at the very
	// end.
	for _, dir := range []string{"rebase-merge", "rebase-apply"} {
		data, err := os.ReadFile(filepath.Join(t.dir, dir, "head-name"))
		if err == nil && strings.HasPrefix(string(data), "refs/heads/") {
			if _, err := git(ctx, t.call("symbolic-ref", "HEAD", strings.TrimSpace(string(data)))); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(filepath.Join(t.dir, dir)); err != nil {
			return err
		}
	}
	_, err := git(ctx, t.call("reset", "--quiet", "--hard"))
	return err
}

// quiet waits until no git is running in t.
func (t tree) quiet(ctx context.Context) error {
	list, err := t.settled(ctx, gitPatience)
	if err != nil {
		return err
	}
	if list = gitsAmong(ctx, list); len(list) > 0 {
		return conflict(team.ReasonWorktreeBusy, "git is still running in %s: %s", t.path, pids(list)).WithHint("wait for it, or end it")
	}
	return nil
}

// dropLocks removes the lock files that a dead git left: those of the worktree,
// in which no git is running, and that of its branch if no git is running in
// the repository either.
func (r *Repo) dropLocks(ctx context.Context, t tree) ([]string, error) {
	files := t.locks()
	if data, err := os.ReadFile(filepath.Join(t.dir, "HEAD")); err == nil {
		if b, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "ref: refs/heads/"); ok {
			at, err := busy(ctx, r.root, r.common)
			if err != nil {
				return nil, err
			}
			if len(gitsAmong(ctx, at)) == 0 {
				files = append(files, filepath.Join(r.common, "refs", "heads", filepath.FromSlash(b)+".lock"))
			}
		}
	}
	var notes []string
	for _, f := range files {
		old := age(f)
		err := os.Remove(f)
		switch {
		case err == nil:
			notes = append(notes, "removed "+f+" ("+old+" old): the git that made it is dead")
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotDir):
			return notes, conflict(team.ReasonLockFile, "remove %s: %w", f, err)
		}
	}
	return notes, nil
}
