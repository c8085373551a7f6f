package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// gitPatience is how long Recover waits for a git that outlived its caller.
const gitPatience = 30 * time.Second

// Recover makes a member's own worktree fit for work again after whoever worked
// in it was killed, and git with it: lock files of dead processes go, and an
// operation that was cut short is undone to the last commit. Uncommitted work
// stays where it can be told apart from what the operation wrote; where it
// cannot, the complete state is in a rescue ref first, and the notes say which.
// A worktree in order is left as it is, at the cost of one git status.
//
// Errors: main_worktree (denied); worktree_busy (conflict): a git is still at
// work there; those of Status.
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
	was, cutShort, err := t.wasDoing()
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

// undone says what is to be undone, or "" when the files can stay as they are.
func (t tree) undone(st Status, was doing, cutShort, locked bool) string {
	switch {
	case cutShort && was.Kind != doingCommit:
		if st.Clean() && was.Kind != doingRestore {
			return "" // it had not begun, or it was through
		}
		return "a " + was.Kind + " that was cut short"
	case st.Operation == "merge" && st.Unmerged == 0 && (!locked || cutShort):
		return "" // resolved by the agent, and perhaps being concluded: Commit does it
	case st.Operation != "":
		return "a " + st.Operation + " that was left over"
	case st.Unmerged > 0:
		return "conflicts that were left over"
	case cutShort, !locked:
		return "" // git add and git commit write no file of the agent's
	}
	// A git of the agent's own. One that writes files deletes each before it makes
	// it anew: a missing file says that it was such a one.
	for _, c := range st.Changes {
		if c.Work == "D" {
			return "a git operation that was cut short"
		}
	}
	return ""
}

// undoCut brings the worktree to its last commit. The snapshot is taken.
func (r *Repo) undoCut(ctx context.Context, t tree, st Status, was doing) error {
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
		// Keeps what is not staged in files that the operation did not touch.
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
	// A merge of ours began with clean files: whatever is changed now it wrote.
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

func missing(st Status) bool {
	for _, c := range st.Changes {
		if c.Work == "D" {
			return true
		}
	}
	return false
}

// dropAdded deletes the files that a cut merge added: untracked now, not there
// before, and in what was merged.
func (r *Repo) dropAdded(ctx context.Context, t tree, now Status, was doing) error {
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

// leaveRebase goes back to the branch that was being rebased, as it was.
func (t tree) leaveRebase(ctx context.Context) error {
	if _, err := git(ctx, t.call("rebase", "--abort")); err == nil || exitStatus(err) < 0 {
		return err
	}
	// Half of its state is missing. The branch itself moves only at the very end.
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

// quiet waits until no git works in t any more.
func (t tree) quiet(ctx context.Context) error {
	list, err := t.settled(ctx, gitPatience)
	if err != nil {
		return err
	}
	if list = gitsAmong(ctx, list); len(list) > 0 {
		return conflict(ReasonBusy, "git is still at work in %s: %s", t.path, pids(list)).WithHint("wait for it, or end it")
	}
	return nil
}

// dropLocks removes the lock files that a dead git left: those of the worktree,
// where no git is at work, and the one of its branch when none is in the
// repository either.
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
			return notes, conflict(ReasonLockFile, "remove %s: %w", f, err)
		}
	}
	return notes, nil
}
