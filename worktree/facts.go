package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// facts decide whether a worktree may be removed. They are complete: a fact
// that cannot be determined is an error.
type facts struct {
	status  team.WorktreeStatus
	hidden  []string // paths that git ignores
	loose   int      // commits of a detached HEAD that no ref reaches
	ignored []string // ignored files that are work; only set for a removal
	busy    []int    // processes whose working directory is inside
}

// inspect gathers the facts. Any doubt is worktree_unknown; a nested repository
// with work of its own is worktree_nested, because no snapshot could hold it.
// inspect waits up to wait for a git that is running in the worktree.
func (r *Repo) inspect(ctx context.Context, t tree, wait time.Duration) (facts, error) {
	f, err := r.tryInspect(ctx, t, wait)
	if err == nil || ctx.Err() != nil {
		return f, err
	}
	switch team.ReasonOf(err) {
	case team.ReasonWorktreeNested, team.ReasonWorktreeUnknown, team.ReasonWorktreeLocked:
		return f, err
	}
	return f, team.Errorf(team.CodeConflict, "%s is kept, because it could not be inspected: %w", t.at, err).
		WithReason(team.ReasonWorktreeUnknown).WithHint(gitHint(t.at, "status"))
}

func (r *Repo) tryInspect(ctx context.Context, t tree, wait time.Duration) (f facts, err error) {
	if why, err := os.ReadFile(filepath.Join(t.dir, "locked")); err == nil {
		return f, lockedError(r.root, t.at, strings.TrimSpace(string(why)))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if f.busy, err = t.settled(ctx, wait); err != nil {
		return f, err
	}
	index, entries, drop, err := r.revealed(ctx, t)
	if err != nil {
		return f, err
	}
	defer drop()
	if f.status, f.hidden, err = t.statusIgnored(ctx, index); err != nil {
		return f, err
	}
	if err := t.nested(ctx, entries, f.status.Changes, f.hidden); err != nil {
		return f, err
	}
	if f.status.Branch == "" && f.status.Head != "" {
		f.loose, err = r.uncontained(ctx, f.status.Head, "", t.at)
	}
	return f, err
}

// inspectFor is inspect for a removal.
func (r *Repo) inspectFor(ctx context.Context, t tree, in RemoveIn) (facts, error) {
	f, err := r.inspect(ctx, t, in.patience())
	if err == nil && !in.Unused {
		f.ignored, err = r.workAmong(ctx, t, f.hidden)
	}
	if err == nil && !in.Force {
		err = t.refusal(f)
	}
	return f, err
}

// CheckRemove returns, for each of paths, the error that Remove would return
// now. A path that does not exist is not an error.
func (r *Repo) CheckRemove(ctx context.Context, paths []string, in RemoveIn) []error {
	errs := make([]error, len(paths))
	each(len(paths), func(i int) {
		p, err := cleanPath(paths[i])
		if err == nil && in.Force {
			err = checkOwner(in.Team, in.Agent)
		}
		var t tree
		if err == nil {
			t, err = r.tree(p)
		}
		switch {
		case err == nil:
			if err = t.notMain("remove the worktree"); err == nil {
				_, err = r.inspectFor(ctx, t, in)
			}
		case team.ReasonOf(err) == team.ReasonPathMissing, in.Force && r.orphaned(p):
			err = nil
		}
		errs[i] = err
	})
	r.step("inspected")
	return errs
}

// refusal returns the error that keeps a worktree with these facts from being
// removed, or nil.
func (t tree) refusal(f facts) error {
	force := "commit the work, or force the removal: a snapshot is taken first"
	switch {
	case !f.status.Clean():
		return conflict(team.ReasonWorktreeDirty, "%s has uncommitted changes: %s", t.at, summary(f.status)).WithHint(force)
	case len(f.ignored) > 0:
		return conflict(team.ReasonWorktreeDirty, "%s has ignored files that exist nowhere else: %s", t.at, names(f.ignored)).
			WithHint("move them away, or force the removal: a snapshot with them is taken first")
	case f.loose > 0:
		return conflict(team.ReasonWorktreeDirty, "%s has %d commits on no branch", t.at, f.loose).
			WithHint(gitHint(t.at, "branch", "NAME") + ", or force the removal: a snapshot is taken first")
	case len(f.busy) > 0:
		return conflict(team.ReasonWorktreeBusy, "%s is in use: %s", t.at, pids(f.busy)).WithHint("end the processes, or force the removal")
	}
	return lockFile(t.locks())
}

// names lists the first few of paths, quoted.
func names(paths []string) string {
	const most = 5
	var quoted []string
	for i, p := range paths {
		if i == most {
			quoted = append(quoted, fmt.Sprintf("and %d more", len(paths)-most))
			break
		}
		quoted = append(quoted, strconv.Quote(p))
	}
	return strings.Join(quoted, " ")
}

func pids(list []int) string {
	s := make([]string, len(list))
	for i, p := range list {
		s[i] = fmt.Sprint(p)
	}
	if len(s) == 1 {
		return "process " + s[0]
	}
	return "processes " + strings.Join(s, ", ")
}

// nested returns an error if a repository inside the worktree has work that
// exists nowhere else: a clone that an agent made, ignored or not, a submodule,
// or a submodule's git directory, which is deleted with the registration.
func (t tree) nested(ctx context.Context, entries []entry, changes []team.FileChange, hidden []string) error {
	var inside []string
	for _, e := range entries {
		if e.mode == "160000" {
			inside = append(inside, e.path)
		}
	}
	for _, c := range changes {
		if c.Nested() {
			inside = append(inside, strings.TrimSuffix(c.Path, "/"))
		}
	}
	ignored, err := t.ignoredRepos(hidden)
	if err != nil {
		return err
	}
	inside = append(inside, ignored...)
	for _, p := range inside {
		dir := filepath.Join(t.path, filepath.FromSlash(p))
		if _, err := os.Lstat(filepath.Join(dir, ".git")); errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
			continue
		}
		stake, err := nestedStake(ctx, dir)
		if err != nil {
			stake = "it could not be inspected: " + err.Error()
		}
		if stake != "" {
			return conflict(team.ReasonWorktreeNested, "%s contains a repository, %s: %s", t.at, p, stake).
				WithHint("push its commits or move it away")
		}
	}
	return t.modules(ctx)
}

// modules checks the git directories of submodules, including those no longer
// checked out.
func (t tree) modules(ctx context.Context) error {
	root := filepath.Join(t.dir, "modules")
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && p == root {
			return fs.SkipDir
		}
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		if !isGitDir(p) {
			return nil
		}
		n, err := unpushed(ctx, call{dir: p, read: true, env: []string{"GIT_DIR=" + p, "GIT_WORK_TREE=" + p}})
		if err != nil {
			return err
		}
		if n > 0 {
			return conflict(team.ReasonWorktreeNested, "%s has a submodule, %s, with commits that are on no remote", t.at, filepath.Base(p)).
				WithHint("push its commits")
		}
		return nil // a submodule's submodules are below it
	})
}

// nestedStake describes what removing a nested repository would lose, or
// returns "".
func nestedStake(ctx context.Context, dir string) (string, error) {
	c := call{dir: dir, read: true, args: []string{"rev-parse", "--show-toplevel"}}
	out, err := git(ctx, c)
	if err != nil {
		return "", err
	}
	if top, err := realPath(dir, oneLine(out)); err != nil || top != dir {
		return "its .git is broken", err
	}
	c.args = []string{"status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=none"}
	if out, err = git(ctx, c); err != nil {
		return "", err
	}
	if n := len(lines(out, 0)); n > 0 {
		return "it has uncommitted work", nil
	}
	n, err := unpushed(ctx, c)
	if n > 0 {
		return "it has commits that are on no remote", err
	}
	return "", err
}

// unpushed counts, up to one, the commits (including stashes) that are on no
// remote.
func unpushed(ctx context.Context, c call) (int, error) {
	c.args = []string{"rev-parse", "--verify", "--quiet", "HEAD"}
	args := []string{"rev-list", "--max-count=1", "--all"}
	switch _, err := git(ctx, c); {
	case err == nil:
		args = append(args, "HEAD")
	case exitStatus(err) != 1:
		return 0, err
	}
	c.args = append(args, "--not", "--remotes")
	out, err := git(ctx, c)
	return len(lines(out, '\n')), err
}
