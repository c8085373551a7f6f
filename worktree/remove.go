package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// RemoveIn configures Remove.
type RemoveIn struct {
	Force        bool   // remove it even with work in it, after a snapshot
	Team, Agent  string // the owner, which names the snapshot; required with Force
	Unused       bool   // no member has worked in it: ignored files, as setup commands make them, do not count
	DeleteBranch bool   // also delete its branch if its commits are contained elsewhere
	Checked      bool   // CheckRemove has just found nothing against it: the last inspection, when it is out of reach, is enough
	Background   bool   // return before the files are deleted; Repo.Wait waits for the deletion
}

// patience is how long Remove waits for a git in the worktree: a forced removal
// continues at once and saves what exists.
func (in RemoveIn) patience() time.Duration {
	if in.Force {
		return 0
	}
	return settleTime
}

// Removed is the result of Remove.
type Removed struct {
	Path          string   `json:"path"`
	Branch        string   `json:"branch,omitempty"`
	Head          string   `json:"head,omitempty"`
	Gone          bool     `json:"gone,omitempty"`      // there was nothing to remove
	RescueRef     string   `json:"rescueRef,omitempty"` // holds the work that was in it
	BranchDeleted bool     `json:"branchDeleted,omitempty"`
	BranchKept    string   `json:"branchKept,omitempty"` // why the branch was kept
	Busy          []int    `json:"busy,omitempty"`       // processes that were inside, if forced
	Notes         []string `json:"notes,omitempty"`
}

// Remove removes the worktree at path: directory and registration. Without
// Force it refuses if the worktree has uncommitted changes, ignored files that
// are work (see ignoredWork), commits of a detached HEAD that no ref reaches,
// or a process in it; it waits a few seconds for a running git such as a
// checkpoint's. Commits on its branch do not prevent the removal: the branch
// stays, unless DeleteBranch is set and its commits are contained elsewhere.
// With Force, Remove first saves the complete state; Removed names the ref. A
// worktree that no longer exists is not an error.
//
// Kept, also with Force: worktree_unknown (something could not be read),
// worktree_nested (a nested repository has work of its own), worktree_locked.
// Kept without Force: worktree_dirty, worktree_busy, lock_file. All are
// conflicts. Others: main_worktree (denied), not_a_worktree, invalid_input
// (invalid).
func (r *Repo) Remove(ctx context.Context, path string, in RemoveIn) (Removed, error) {
	p, err := cleanPath(path)
	if err != nil {
		return Removed{}, err
	}
	if in.Force {
		if err := checkOwner(in.Team, in.Agent); err != nil {
			return Removed{}, err
		}
	}
	// Before the lock, so that a refusal does not make others wait.
	t, err := r.tree(p)
	if err == nil {
		if err := t.notMain("remove the worktree"); err != nil {
			return Removed{}, err
		}
		if !in.Checked {
			if _, err := r.inspectFor(ctx, t, in); err != nil {
				return Removed{}, err
			}
			r.step("inspected")
		}
	}
	l, err := r.lock(ctx)
	if err != nil {
		return Removed{}, err
	}
	res, o, err := r.removeLocked(ctx, p, in)
	if unlock := l.Unlock(); err == nil && unlock != nil {
		err = noSpace(unlock)
	}
	if o == nil {
		return res, err
	}
	if in.Background {
		r.deletions.Add(1)
		go func() {
			defer r.deletions.Done()
			_ = r.deleteAside(o) // the next repair deletes what is left
		}()
		return res, err
	}
	if e := r.deleteAside(o); err == nil && e != nil {
		err = noSpace(fmt.Errorf("remove the worktree %s: its files are at %s: %w", p, o.Aside, e))
	}
	return res, err
}

// deleteAside deletes the files of a removed worktree.
func (r *Repo) deleteAside(o *op) error {
	if err := removeTree(o.Aside); err != nil {
		o.leave()
		return err
	}
	r.step("deleted")
	o.end()
	return nil
}

// removeLocked performs the serial part; if it returns an op, the caller
// deletes its Aside.
func (r *Repo) removeLocked(ctx context.Context, p string, in RemoveIn) (Removed, *op, error) {
	res := Removed{Path: p}
	var err error
	if res.Notes, err = r.repair(ctx); err != nil {
		return res, nil, err
	}
	t, err := r.tree(p) // again: repair may have restored it
	switch {
	case team.ReasonOf(err) == team.ReasonPathMissing:
		return r.removeMissing(ctx, res, in)
	case err != nil && r.orphaned(p):
		t, err = tree{path: p, at: p, dir: r.common}, nil
		if !in.Force {
			return res, nil, conflict(team.ReasonWorktreeUnknown, "%s is kept: it is no longer registered, so its changes are unknown", p).
				WithHint(gitHint(r.root, "worktree", "repair", p) + ", or force the removal: a snapshot is taken first")
		}
	case err == nil:
		err = t.notMain("remove the worktree")
	}
	if err != nil {
		return res, nil, err
	}
	o := &op{Kind: opRemove, Path: p, Aside: filepath.Join(filepath.Dir(p), asideMark+team.NewUUID())}
	if t.dir != r.common {
		o.Admin = t.dir
	}
	if in.DeleteBranch && o.Admin != "" {
		if o.DropBranch, err = t.branch(ctx); err != nil {
			return res, nil, err
		}
	}
	if err := r.begin(o); err != nil {
		return res, nil, noSpace(err)
	}
	r.step("remove-begun")
	// A submodule refers to its worktree by path and cannot be read anywhere
	// else.
	if _, err := os.Lstat(filepath.Join(t.dir, "modules")); err == nil && o.Admin != "" {
		if err := r.secure(ctx, t, o, in, &res); err != nil {
			o.end()
			return res, nil, err
		}
	}
	if err := os.Rename(p, o.Aside); err != nil {
		o.end()
		return res, nil, conflict(team.ReasonWorktreeUnknown, "%s is kept: it cannot be moved: %w", p, err)
	}
	r.step("moved")
	t.path = o.Aside
	if !o.doomed {
		if err := r.secure(ctx, t, o, in, &res); err != nil {
			return res, nil, r.putBack(o, err)
		}
	}
	r.step("doomed")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	if err := r.unregister(ctx, o, &res); err != nil {
		o.leave()
		return res, nil, failed("remove the worktree "+p, err)
	}
	return res, o, nil
}

// asideMark is the prefix of a directory that is being removed.
const asideMark = ".teamctl-removed-"

// IsAside reports whether a directory's name is that of one moved aside by
// Remove.
func IsAside(name string) bool { return strings.HasPrefix(name, asideMark) }

// orphaned reports whether the .git file at p names a registration of this
// repository that no longer exists.
func (r *Repo) orphaned(p string) bool {
	admin, err := adminOf(p)
	if err != nil || filepath.Dir(admin) != filepath.Join(r.common, "worktrees") {
		return false
	}
	_, err = os.Lstat(admin)
	return errors.Is(err, fs.ErrNotExist)
}

// secure reads the facts after no process can reach the files by their path any
// more, and saves everything worth keeping to a ref before it dooms the rest.
func (r *Repo) secure(ctx context.Context, t tree, o *op, in RemoveIn, res *Removed) error {
	var sha string
	if o.Admin == "" {
		f, err := busy(ctx, t.at, t.path)
		if err != nil {
			return err
		}
		res.Busy = f
		if sha, err = r.snapshotOrphan(ctx, t); err != nil {
			return err
		}
	} else {
		f, err := r.inspectFor(ctx, t, in)
		if err != nil {
			return err
		}
		res.Branch, res.Head, res.Busy = f.status.Branch, f.status.Head, f.busy
		if !f.status.Clean() || f.loose > 0 || len(f.ignored) > 0 {
			if sha, err = r.snapshot(ctx, t, true, "a forced removal"); err != nil {
				return err
			}
			res.Notes = append(res.Notes, t.large(f)...)
			if len(f.ignored) > 0 {
				res.Notes = append(res.Notes, "the snapshot of "+t.at+" has ignored files: "+names(f.ignored))
			}
		}
	}
	if sha != "" {
		var err error
		if res.RescueRef, err = r.rescueRef(ctx, in.Team, in.Agent, sha); err != nil {
			return err
		}
		r.step("rescued")
	}
	return o.doom()
}

// snapshotOrphan saves all files except those that are ignored and rebuildable;
// HEAD and index are lost.
func (r *Repo) snapshotOrphan(ctx context.Context, t tree) (string, error) {
	index, drop, err := r.tempIndex("")
	if err != nil {
		return "", err
	}
	defer drop()
	changes, err := t.changes(ctx, index)
	if err != nil {
		return "", err
	}
	hidden, err := t.ignored(ctx)
	if err != nil {
		return "", err
	}
	if err := t.nested(ctx, nil, changes, hidden); err != nil {
		return "", err
	}
	ignored, err := r.workAmong(ctx, t, hidden)
	if err != nil {
		return "", err
	}
	return r.commitTree(ctx, t, snapshotIn{index: index, changes: changes, ignored: ignored, durable: true,
		why: "a forced removal without its registration"})
}

// putBack undoes the move of a refused removal.
func (r *Repo) putBack(o *op, why error) error {
	if _, err := os.Lstat(o.Path); !errors.Is(err, fs.ErrNotExist) {
		o.end()
		return lastCoded(errors.Join(fmt.Errorf("%s is occupied; the files of the worktree are at %s", o.Path, o.Aside), why))
	}
	if err := os.Rename(o.Aside, o.Path); err != nil {
		o.leave()
		return lastCoded(errors.Join(fmt.Errorf("move %s back: %w", o.Aside, err), why))
	}
	o.end()
	return why
}

// unregister drops registration and branch of a doomed worktree. It may be
// repeated.
func (r *Repo) unregister(ctx context.Context, o *op, res *Removed) error {
	if o.Admin != "" {
		back, err := backlink(o.Admin)
		switch {
		case errors.Is(err, fs.ErrNotExist): // already done
		case err != nil:
			return err
		case back == o.Path:
			if err := r.dropAdmin(o.Admin); err != nil {
				return err
			}
		}
	}
	r.step("dropped")
	if o.DropBranch == "" {
		if res.Branch != "" {
			res.BranchKept = "nobody asked to delete it"
		}
		return nil
	}
	var err error
	res.BranchDeleted, res.BranchKept, err = r.dropContained(ctx, o.DropBranch)
	r.step("branch-done")
	return err
}

// dropContained deletes a branch if all its commits are contained in another
// branch, a tag, a remote branch or the HEAD of a worktree.
func (r *Repo) dropContained(ctx context.Context, branch string) (deleted bool, kept string, err error) {
	tip, known := "", false
	if checkBranch(branch) == nil { // a file may name anything
		tip, known = r.branchRef(branch)
	}
	if !known {
		if tip, err = r.Resolve(ctx, "refs/heads/"+branch); err != nil && team.ReasonOf(err) != team.ReasonUnknownRev {
			return false, "", err
		}
	}
	if tip == "" {
		return false, "", nil
	}
	list, err := r.heads(ctx)
	if err != nil {
		return false, "", err
	}
	for _, w := range list {
		if w.Branch == branch {
			return false, "it is checked out in " + w.Path, nil
		}
	}
	n, err := r.uncontainedIn(ctx, list, tip, branch, "")
	if err != nil {
		if _, e := r.Resolve(ctx, "refs/heads/"+branch); team.ReasonOf(e) == team.ReasonUnknownRev {
			return false, "", nil // its commit is missing
		}
		return false, "", err
	}
	if n > 0 {
		return false, fmt.Sprintf("%d of its commits are in no other branch", n), nil
	}
	if err := r.dropBranchAt(ctx, branch, tip); err != nil {
		return false, "", err
	}
	return true, "", nil
}

// removeMissing drops the registration of a worktree whose directory does not
// exist.
func (r *Repo) removeMissing(ctx context.Context, res Removed, in RemoveIn) (Removed, *op, error) {
	admin, err := r.adminAt(res.Path)
	if err != nil {
		return res, nil, err
	}
	if admin == "" {
		res.Gone = true
		return res, nil, nil
	}
	data, err := os.ReadFile(filepath.Join(admin, "HEAD"))
	if err == nil {
		if b, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "ref: refs/heads/"); ok {
			res.Branch = b
		}
	}
	owner, agent := in.Team, in.Agent
	if checkOwner(owner, agent) != nil {
		owner, agent = "teamctl", "pruned"
	}
	if res.RescueRef, err = r.pruneAdmin(ctx, admin, res.Path, owner, agent); err != nil {
		return res, nil, err
	}
	switch {
	case res.Branch == "":
	case in.DeleteBranch:
		res.BranchDeleted, res.BranchKept, err = r.dropContained(ctx, res.Branch)
	default:
		res.BranchKept = "nobody asked to delete it"
	}
	return res, nil, err
}

// repairRemove undoes a remove whose process died before it was doomed, and
// completes it if it died after.
func (r *Repo) repairRemove(ctx context.Context, o *op) (string, error) {
	_, err := os.Lstat(o.Aside)
	moved := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if o.doomed && !moved && o.Admin != "" {
		// Doomed in place, or deleted except for the op file.
		if admin, err := adminOf(o.Path); err == nil && admin == o.Admin {
			return "kept " + o.Path + ", whose removal was interrupted", nil
		}
	}
	if o.doomed {
		var res Removed
		if err := r.unregister(ctx, o, &res); err != nil {
			return "", err
		}
		return "completed the removal of " + o.Path, removeTree(o.Aside)
	}
	if !moved {
		return "", nil
	}
	if _, err := os.Lstat(o.Path); err == nil {
		return "kept " + o.Aside + ": it was " + o.Path + ", where something else stands now", nil
	}
	if err := os.Rename(o.Aside, o.Path); err != nil {
		return "", err
	}
	return "restored " + o.Path + ", whose removal was interrupted", nil
}
