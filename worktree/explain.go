package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/teamctl/teamctl/team"
)

// explain determines from facts, not from git's messages, why a create failed.
// It runs before the rollback, on a context of its own.
func (r *Repo) explain(ctx context.Context, o *op, cause error) error {
	if team.ReasonOf(cause) != "" {
		return cause // git missing, disk full, ctx ended
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	if o.Branch != "" {
		if err := r.refConflict(ctx, o.Branch); err != nil {
			return err
		}
		if err := r.checkedOut(ctx, o.Branch, o.Path); err != nil {
			return err
		}
	}
	if err := lockFile(r.lockFiles(o)); err != nil {
		return err
	}
	if _, err := r.Resolve(ctx, o.Base); team.ReasonOf(err) == team.ReasonUnknownRev {
		return invalid(team.ReasonUnreadableRepo, "create the worktree %s: the commit %s cannot be read: %w", o.Path, o.Base, cause).
			WithHint(gitHint(r.root, "fsck"))
	}
	if err := full(filepath.Dir(o.Path), r.common); err != nil {
		return team.Errorf(team.CodeOf(err), "create the worktree %s: %w: %v", o.Path, err, cause).
			WithReason(team.ReasonDiskFull).WithHint(team.HintOf(err))
	}
	return failed("create the worktree "+o.Path, cause)
}

// fullBelow is the number of free bytes below which a disk counts as full: git
// often reports only "unable to write", and has freed some space since.
const fullBelow = 1 << 20

// full returns an error if one of the directories is on a file system without
// free space or inodes.
func full(dirs ...string) error {
	for _, d := range dirs {
		var st syscall.Statfs_t
		if syscall.Statfs(d, &st) != nil {
			continue
		}
		if uint64(st.Bavail)*uint64(st.Bsize) < fullBelow || st.Files > 0 && st.Ffree == 0 {
			return team.Errorf(team.CodeUnavailable, "no space left on the disk of %s", d).
				WithReason(team.ReasonDiskFull).WithHint("free some space, then try again")
		}
	}
	return nil
}

// branchTaken returns the error for an existing branch: checked out elsewhere,
// or reusable.
func (r *Repo) branchTaken(ctx context.Context, branch string) error {
	if err := r.checkedOut(ctx, branch, ""); err != nil {
		return err
	}
	return conflict(team.ReasonBranchExists, "the branch %s already exists", branch).
		WithHint("reuse it (it is not checked out), or choose another name")
}

// checkedOut returns an error if branch is checked out in a worktree other than
// at.
func (r *Repo) checkedOut(ctx context.Context, branch, at string) error {
	list, err := r.List(ctx)
	if err != nil {
		return err
	}
	for _, w := range list {
		if w.Branch != branch || w.Path == at {
			continue
		}
		e := conflict(team.ReasonCheckedOut, "the branch %s is checked out in %s", branch, w.Path).
			WithHint("choose another branch, or detach that worktree: " + gitHint(w.Path, "switch", "--detach"))
		if w.Missing {
			e = e.WithHint("that directory no longer exists: " + gitHint(r.root, "worktree", "remove", w.Path))
		}
		return e
	}
	return nil
}

// refConflict returns an error if a branch exists whose name is a directory of
// branch's name, or the reverse: a and a/b cannot both be files.
func (r *Repo) refConflict(ctx context.Context, branch string) error {
	args := []string{"for-each-ref", "--format=%(refname:strip=2)", "refs/heads/" + branch + "/"}
	above := map[string]bool{}
	for i, c := range branch {
		if c == '/' {
			above[branch[:i]] = true
			args = append(args, "refs/heads/"+branch[:i])
		}
	}
	out, err := r.read(ctx, args...)
	if err != nil {
		return failed("list branches like "+branch, err)
	}
	for _, other := range lines(out, '\n') {
		// The pattern also matches branches below it.
		if above[other] || strings.HasPrefix(other, branch+"/") {
			return conflict(team.ReasonRefConflict, "the branch %s conflicts with the existing branch %s", branch, other).
				WithHint("choose another name")
		}
	}
	return nil
}

func (r *Repo) lockFiles(o *op) []string {
	files := []string{filepath.Join(r.common, "config.lock"), filepath.Join(r.common, "packed-refs.lock")}
	if o.Branch != "" {
		files = append(files, filepath.Join(r.common, "refs", "heads", filepath.FromSlash(o.Branch)+".lock"))
	}
	if admin, err := adminOf(o.Path); err == nil {
		files = append(files, filepath.Join(admin, "index.lock"), filepath.Join(admin, "HEAD.lock"))
	}
	return files
}

// lockFile returns an error for the first of files that exists.
func lockFile(files []string) error {
	for _, f := range files {
		if _, err := os.Lstat(f); err == nil {
			return conflict(team.ReasonLockFile, "%s exists (%s old): another git is running, or has crashed", f, age(f)).
				WithHint("when no git is running in the repository: rm " + team.ShellQuote(f))
		}
	}
	return nil
}

// locks returns the lock files that keep git from working in t.
func (t tree) locks() []string {
	return []string{filepath.Join(t.dir, "index.lock"), filepath.Join(t.dir, "HEAD.lock")}
}

// lockedOr explains a failure of git in t by a lock file or a full disk, if
// there is one.
func (t tree) lockedOr(what string, err error) error {
	if team.ReasonOf(err) == "" {
		if locked := lockFile(t.locks()); locked != nil {
			return locked
		}
		if noRoom := full(t.path, t.dir); noRoom != nil {
			return failed(what, noRoom)
		}
	}
	return failed(what, err)
}

// nameWorktree turns path_exists into worktree_exists if the path is a worktree
// of this repository.
func (r *Repo) nameWorktree(path string, err error) error {
	if team.ReasonOf(err) != team.ReasonPathExists {
		return err
	}
	if _, at := r.tree(path); at != nil {
		return err
	}
	return conflict(team.ReasonWorktreeExists, "%s is already a worktree of %s", path, r.root).
		WithHint(gitHint(path, "status"))
}

// noSpace adds a code to an error of the file system.
func noSpace(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return team.Errorf(team.CodeUnavailable, "no space left on the disk: %w", err).
			WithReason(team.ReasonDiskFull).WithHint("free some space, then try again")
	}
	return team.Errorf(team.CodeUnavailable, "%w", err).WithReason(team.ReasonInvalidPath)
}

// lastCoded gives a joined error (failures of the rollback, then the cause) the
// code, reason and hint of its cause, which is the last.
func lastCoded(err error) error {
	var many interface{ Unwrap() []error }
	if !errors.As(err, &many) {
		return err
	}
	all := many.Unwrap()
	cause := all[len(all)-1]
	if len(all) == 1 {
		return cause
	}
	return team.Errorf(team.CodeOf(cause), "%w (rollback failed: %v)", cause, errors.Join(all[:len(all)-1]...)).
		WithReason(team.ReasonOf(cause)).WithHint(team.HintOf(cause))
}
