package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
)

// Repo is a repository whose worktrees this package manages. It is safe for
// concurrent use. Call Wait before the process exits.
type Repo struct {
	root   string // the main worktree, or the directory of a bare repository
	common string // the common git directory
	bare   bool

	checkouts chan struct{} // limits concurrent checkouts to the number of cores
	filling   atomic.Int32  // checkouts running or waiting
	deletions sync.WaitGroup

	noMergeTree atomic.Bool // git cannot merge without a working tree

	clone func(dst, src *os.File) error // reflink if the file system supports it

	step func(name string) // see WithSteps; never nil
}

// OpenRepo finds the repository that contains path. path may be its main
// worktree, a directory below it, a linked worktree or a bare repository; the
// result is always the main repository. OpenRepo writes nothing.
//
// Errors: path_missing (not found); not_a_repository, repository_unreadable,
// unborn_head (invalid); git_missing (unavailable).
func OpenRepo(ctx context.Context, path string) (*Repo, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return nil, invalid(team.ReasonInvalidPath, "open the repository at %s: %w", path, err)
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, notFound(team.ReasonPathMissing, "open the repository at %s: no such directory", dir).
			WithHint("give the path of a git repository")
	case err != nil:
		return nil, team.Errorf(team.CodeUnavailable, "open the repository at %s: %w", dir, err).WithReason(team.ReasonInvalidPath)
	case !info.IsDir():
		return nil, invalid(team.ReasonInvalidPath, "open the repository at %s: not a directory", dir)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, invalid(team.ReasonInvalidPath, "open the repository at %s: %w", path, err)
	}
	r := &Repo{checkouts: make(chan struct{}, runtime.NumCPU()), clone: reflink, step: stepsOf(ctx)}
	if err := r.find(ctx, dir); err != nil {
		return nil, err
	}
	if r.headRef() != "" {
		return r, nil
	}
	if _, err := r.Head(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// find sets root, common and bare.
func (r *Repo) find(ctx context.Context, dir string) error {
	if r.plain(dir) {
		return nil
	}
	return r.ask(ctx, dir)
}

// ask is find by git.
func (r *Repo) ask(ctx context.Context, dir string) error {
	// The last option fails in a bare repository and inside a .git directory;
	// git still answers the options before it.
	out, err := git(ctx, call{dir: dir, read: true, args: []string{"rev-parse", "--git-dir", "--git-common-dir", "--is-bare-repository", "--show-toplevel"}})
	ln := lines(out, '\n')
	if err != nil && (len(ln) < 3 || exitStatus(err) < 0) {
		if exitStatus(err) < 0 {
			return failed("open the repository at "+dir, err)
		}
		if above := gitAbove(dir); above != "" {
			return invalid(team.ReasonUnreadableRepo, "open the repository at %s: git rejects %s: %w", dir, above, err).
				WithHint(gitHint(dir, "status"))
		}
		return invalid(team.ReasonNotRepository, "%s is not in a git repository", dir).
			WithHint(gitHint(dir, "init") + " && " + gitHint(dir, "commit", "--allow-empty", "-m", "start"))
	}
	if len(ln) < 3 || ln[2] != "true" && ln[2] != "false" {
		return team.Errorf(team.CodeInternal, "open the repository at %s: git answered %q", dir, out).WithReason(team.ReasonGitFailed)
	}
	gitdir, err := realPath(dir, ln[0])
	if err != nil {
		return failed("open the repository at "+dir, err)
	}
	if r.common, err = realPath(dir, ln[1]); err != nil {
		return failed("open the repository at "+dir, err)
	}
	r.bare = ln[2] == "true"
	if gitdir == r.common && !r.bare && len(ln) > 3 {
		r.root, err = realPath(dir, strings.Join(ln[3:], "\n")) // a path may contain a newline
		return failed("open the repository at "+dir, err)
	}
	list, err := listIn(ctx, dir)
	if err != nil {
		return failed("open the repository at "+dir, err)
	}
	if len(list) == 0 {
		return team.Errorf(team.CodeInternal, "open the repository at %s: git lists no worktree", dir).WithReason(team.ReasonGitFailed)
	}
	// In a linked worktree, --is-bare-repository describes that worktree.
	r.bare = list[0].Bare
	r.root = list[0].Path
	if _, err := os.Stat(r.root); r.bare || err != nil {
		r.root = r.common
	}
	return nil
}

// gitAbove returns the nearest .git at dir or above that may have been a
// repository's, or "". It skips an empty .git directory further up: sandboxes
// of agents leave one in /tmp, and git skips it too.
func gitAbove(dir string) string {
	for first := true; ; first = false {
		p := filepath.Join(dir, ".git")
		if fi, err := os.Lstat(p); err == nil && (first || !fi.IsDir() || !isEmpty(p)) {
			return p
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

func isEmpty(dir string) bool {
	es, err := os.ReadDir(dir)
	return err == nil && len(es) == 0
}

func realPath(base, p string) (string, error) {
	if !filepath.IsAbs(p) {
		p = filepath.Join(base, p)
	}
	return filepath.EvalSymlinks(p)
}

// Root returns the main worktree, or the directory of a bare repository.
func (r *Repo) Root() string { return r.root }

// Wait waits for the deletions that Remove left running.
func (r *Repo) Wait() { r.deletions.Wait() }

// Head returns the commit at HEAD of the main worktree, or unborn_head
// (invalid) if there is none yet.
func (r *Repo) Head(ctx context.Context) (string, error) {
	out, err := r.read(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	switch {
	case exitStatus(err) == 1:
		return "", invalid(team.ReasonUnbornHead, "the repository %s has no commit yet", r.root).
			WithHint(gitHint(r.root, "commit", "--allow-empty", "-m", "first commit"))
	case err != nil:
		return "", failed("read HEAD of "+r.root, err)
	}
	return oneLine(out), nil
}

// Resolve returns the commit that rev names, or unknown_revision (not found).
func (r *Repo) Resolve(ctx context.Context, rev string) (string, error) {
	if err := checkRev(rev); err != nil {
		return "", err
	}
	out, err := r.read(ctx, "rev-parse", "--verify", "--quiet", rev+"^{commit}")
	if s := exitStatus(err); s == 1 || s == 128 {
		return "", unknownRev(r.root, rev)
	}
	if err != nil {
		return "", failed("resolve "+rev, err)
	}
	return oneLine(out), nil
}

// BranchTip returns the commit of a branch, or unknown_revision (not found). Unlike
// Resolve, it does not check that the commit exists.
func (r *Repo) BranchTip(ctx context.Context, branch string) (string, error) {
	if tip := r.plainTip(branch); tip != "" {
		return tip, nil
	}
	return r.Resolve(ctx, "refs/heads/"+branch)
}

// plainTip returns the commit of a branch, or "" if the files do not show it.
func (r *Repo) plainTip(branch string) string {
	if checkBranch(branch) != nil || isObjectID(branch) { // see tipOf
		return ""
	}
	tip, _ := r.branchRef(branch)
	return tip
}

// tipOf returns the commit of a branch, or else that rev names: where a tag has the name of a
// branch, git takes the tag.
func (r *Repo) tipOf(ctx context.Context, rev string) (string, error) {
	if isObjectID(rev) { // git takes it for nothing else
		return r.Resolve(ctx, rev)
	}
	tip, err := r.Resolve(ctx, "refs/heads/"+rev)
	if team.ReasonOf(err) == team.ReasonUnknownRev {
		return r.Resolve(ctx, rev)
	}
	return tip, err
}

func unknownRev(root, rev string) error {
	return notFound(team.ReasonUnknownRev, "%q is not a commit in %s", rev, root).
		WithHint(gitHint(root, "branch", "--all"))
}

func checkRev(rev string) error {
	if rev == "" || strings.HasPrefix(rev, "-") || strings.ContainsAny(rev, "\n\x00") {
		return invalid(team.ReasonUnknownRev, "%q is not a revision", rev)
	}
	return nil
}

// IsAncestor reports whether descendant contains ancestor; a commit contains
// itself.
func (r *Repo) IsAncestor(ctx context.Context, ancestor, descendant string) (bool, error) {
	for _, rev := range []string{ancestor, descendant} {
		if err := checkRev(rev); err != nil {
			return false, err
		}
	}
	return isAncestor(ctx, call{dir: r.root, read: true}, ancestor, descendant)
}

func isAncestor(ctx context.Context, c call, ancestor, descendant string) (bool, error) {
	c.args = []string{"merge-base", "--is-ancestor", ancestor, descendant}
	_, err := git(ctx, c)
	switch {
	case err == nil:
		return true, nil
	case exitStatus(err) == 1:
		return false, nil
	default:
		return false, failed("compare "+ancestor+" with "+descendant, err)
	}
}

// uncontained counts the commits of tip that are not reachable from a branch
// other than exceptBranch (a short name, or ""), a tag, a remote branch or the
// HEAD of a worktree other than exceptPath. A snapshot under refs/teamctl does not
// count: it may be dropped.
func (r *Repo) uncontained(ctx context.Context, tip, exceptBranch, exceptPath string) (int, error) {
	list, err := r.heads(ctx)
	if err != nil {
		return 0, err
	}
	return r.uncontainedIn(ctx, list, tip, exceptBranch, exceptPath)
}

// uncontainedIn is uncontained with the list of worktrees.
func (r *Repo) uncontainedIn(ctx context.Context, list []Registered, tip, exceptBranch, exceptPath string) (int, error) {
	args := []string{"rev-list", tip, "--not"}
	if exceptBranch != "" {
		args = append(args, "--exclude="+exceptBranch)
	}
	args = append(args, "--branches", "--tags", "--remotes")
	for _, w := range list {
		if w.Head != "" && w.Path != exceptPath && (exceptBranch == "" || w.Branch != exceptBranch) {
			if w.Head == tip {
				return 0, nil
			}
			args = append(args, w.Head)
		}
	}
	out, err := r.read(ctx, args...)
	if err != nil {
		return 0, failed("find "+tip+" in other branches", err)
	}
	return len(lines(out, '\n')), nil
}

func (r *Repo) read(ctx context.Context, args ...string) ([]byte, error) {
	return git(ctx, call{dir: r.root, args: args, read: true})
}

// own returns a path in teamctl's directory below the common directory.
func (r *Repo) own(name string) string { return filepath.Join(r.common, "teamctl", name) }

// lock takes the repository's lock, which every process that uses this package
// shares.
func (r *Repo) lock(ctx context.Context) (*filelock.Held, error) {
	err := os.MkdirAll(r.own("ops"), 0o700)
	if err == nil {
		var l *filelock.Held
		if l, err = filelock.Lock(ctx, r.own("lock")); err == nil {
			return l, nil
		}
	}
	if cause := ctx.Err(); cause != nil {
		return nil, ended("lock", r.common, cause)
	}
	return nil, team.Errorf(team.CodeUnavailable, "lock the repository %s: %w", r.common, err).
		WithReason(team.ReasonReadOnly).WithHint("make " + r.common + " writable")
}
