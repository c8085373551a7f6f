package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/team"
)

// Worktree is a member's worktree, as Create made it.
type Worktree struct {
	Path   string   `json:"path"`
	Branch string   `json:"branch,omitempty"` // short name; "" for a detached HEAD
	Base   string   `json:"base,omitempty"`   // the commit at which it was created; "" if not recorded
	Repo   string   `json:"repo"`             // Repo.Root
	Notes  []string `json:"notes,omitempty"`  // for the user: submodules, repairs
}

// tree is a worktree verified to belong to this repository: its .git file names
// an admin directory of the repository, and that names the worktree. git is run
// with both given explicitly, so that a missing .git file never makes git use a
// repository in a parent directory.
type tree struct {
	path string // where the files are
	at   string // where it is registered; differs from path only while it is moved aside
	dir  string // its git directory: <common>/worktrees/<id>, or common for the main one
	main bool
	env  []string // added to git's environment
}

// OpenWorktree finds the repository of the worktree at path and what was
// recorded about it. Errors are those of OpenRepo, and not_a_worktree
// (invalid).
func OpenWorktree(ctx context.Context, path string) (*Repo, Worktree, error) {
	r, err := OpenRepo(ctx, path)
	if err != nil {
		return nil, Worktree{}, err
	}
	t, err := r.tree(path)
	if err != nil {
		return nil, Worktree{}, err
	}
	w := Worktree{Path: t.path, Repo: r.root, Base: t.recorded().Base}
	if w.Branch, err = t.branch(ctx); err != nil {
		return nil, Worktree{}, err
	}
	return r, w, nil
}

// tree locates the worktree at path.
func (r *Repo) tree(path string) (tree, error) {
	p, err := cleanPath(path)
	if err != nil {
		return tree{}, err
	}
	info, err := os.Lstat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tree{}, notFound(team.ReasonPathMissing, "the worktree %s does not exist", p).
			WithHint(gitHint(r.root, "worktree", "list"))
	case err != nil:
		return tree{}, conflict(team.ReasonWorktreeUnknown, "check the worktree %s: %w", p, err)
	case !info.IsDir():
		return tree{}, invalid(team.ReasonNotWorktree, "%s is not a directory", p)
	case p == r.root && !r.bare:
		return tree{path: p, at: p, dir: r.common, main: true}, nil
	}
	admin, err := adminOf(p)
	if err != nil {
		if at, e := r.adminAt(p); e == nil && at != "" { // still registered
			err = team.Errorf(team.CodeOf(err), "%w", err).WithReason(team.ReasonOf(err)).
				WithHint(gitHint(r.root, "worktree", "repair")) // with the path, it looks for the .git file
		}
		return tree{}, err
	}
	if filepath.Dir(admin) != filepath.Join(r.common, "worktrees") {
		return tree{}, invalid(team.ReasonNotWorktree, "%s is not a worktree of %s: its git directory is %s", p, r.root, admin)
	}
	back, err := backlink(admin)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tree{}, conflict(team.ReasonWorktreeUnknown, "%s is a worktree that is no longer registered", p).
			WithHint(gitHint(r.root, "worktree", "repair", p))
	case err != nil:
		return tree{}, conflict(team.ReasonWorktreeUnknown, "read the registration of %s: %w", p, err)
	case back != p:
		return tree{}, conflict(team.ReasonWorktreeUnknown, "%s is a copy of, or was moved from, the worktree %s", p, back).
			WithHint(gitHint(r.root, "worktree", "repair", p))
	}
	return tree{path: p, at: p, dir: admin}, nil
}

// adminOf returns the git directory that the .git file of a linked worktree
// names.
func adminOf(path string) (string, error) {
	gitfile := filepath.Join(path, ".git")
	info, err := os.Lstat(gitfile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", invalid(team.ReasonNotWorktree, "%s is not a worktree: it has no .git file", path)
	}
	if err != nil {
		return "", conflict(team.ReasonWorktreeUnknown, "check %s: %w", gitfile, err)
	}
	if !info.Mode().IsRegular() {
		return "", invalid(team.ReasonNotWorktree, "%s is not a linked worktree: its .git is not a file", path)
	}
	data, err := os.ReadFile(gitfile)
	if err != nil {
		return "", conflict(team.ReasonWorktreeUnknown, "read %s: %w", gitfile, err)
	}
	to, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), "gitdir: ")
	if !ok {
		return "", invalid(team.ReasonNotWorktree, "%s is not a worktree: %s names no git directory", path, gitfile)
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(path, to)
	}
	// The admin directory itself may be missing; its parent must exist to be
	// resolved.
	parent, err := filepath.EvalSymlinks(filepath.Dir(to))
	if err != nil {
		parent = filepath.Clean(filepath.Dir(to))
	}
	return filepath.Join(parent, filepath.Base(to)), nil
}

// RepoOf returns the root of the repository that the linked worktree at path
// names, if both it and the registration exist, even if the registration names
// another path; otherwise "".
func RepoOf(ctx context.Context, path string) string {
	admin, err := adminOf(path)
	if err != nil {
		return ""
	}
	if _, err := os.Lstat(filepath.Join(admin, "HEAD")); err != nil {
		return ""
	}
	r, err := OpenRepo(ctx, filepath.Dir(filepath.Dir(admin)))
	if err != nil {
		return ""
	}
	return r.root
}

// backlink returns the worktree to which an admin directory belongs.
func backlink(admin string) (string, error) {
	data, err := os.ReadFile(filepath.Join(admin, "gitdir"))
	if err != nil {
		return "", err
	}
	to := strings.TrimRight(string(data), "\r\n")
	if to == "" {
		return "", fmt.Errorf("%s/gitdir is empty", admin)
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(admin, to)
	}
	return cleanPath(filepath.Dir(to))
}

// cleanPath resolves the symlinks above the last component. It leaves the last
// one alone: a link in place of a worktree is never followed.
func cleanPath(path string) (string, error) {
	p, err := filepath.Abs(path)
	if err != nil {
		return "", invalid(team.ReasonInvalidPath, "resolve %q: %w", path, err)
	}
	if path == "" || strings.ContainsAny(path, "\n\x00") {
		return "", invalid(team.ReasonInvalidPath, "%q cannot be the path of a worktree", path)
	}
	var rest []string
	for dir := filepath.Dir(p); ; dir = filepath.Dir(dir) {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return filepath.Join(append([]string{real}, append(rest, filepath.Base(p))...)...), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return "", invalid(team.ReasonInvalidPath, "resolve %s: %w", p, err)
		}
		rest = append([]string{filepath.Base(dir)}, rest...)
	}
}

func (t tree) call(args ...string) call {
	return call{dir: t.path, args: args, env: append([]string{"GIT_DIR=" + t.dir, "GIT_WORK_TREE=" + t.path}, t.env...)}
}

func (t tree) readCall(args ...string) call {
	c := t.call(args...)
	c.read = true
	return c
}

func (t tree) read(ctx context.Context, args ...string) ([]byte, error) {
	return git(ctx, t.readCall(args...))
}

// made returns the commit at HEAD after a git that has succeeded: it need not
// be looked for.
func (t tree) made(ctx context.Context) (string, error) {
	if _, tip, _ := t.headRef(); tip != "" {
		return tip, nil
	}
	return t.head(ctx)
}

// head returns the commit at HEAD.
func (t tree) head(ctx context.Context) (string, error) {
	out, err := t.read(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if exitStatus(err) == 1 {
		return "", invalid(team.ReasonUnbornHead, "the worktree %s has no commit yet", t.path)
	}
	if err != nil {
		return "", failed("read HEAD of "+t.path, err)
	}
	return oneLine(out), nil
}

// branch returns the short name of the branch at HEAD, or "" if it is detached.
func (t tree) branch(ctx context.Context) (string, error) {
	if name, _, known := t.headRef(); known {
		return name, nil
	}
	out, err := t.read(ctx, "symbolic-ref", "--quiet", "HEAD")
	if exitStatus(err) == 1 {
		return "", nil
	}
	if err != nil {
		return "", failed("read HEAD of "+t.path, err)
	}
	return strings.TrimPrefix(oneLine(out), "refs/heads/"), nil
}

// notMain returns an error for the user's own checkout, which must not be
// changed.
func (t tree) notMain(verb string) error {
	if t.main {
		return team.Errorf(team.CodeDenied, "cannot %s in %s: it is the main worktree", verb, t.path).
			WithReason(team.ReasonMainWorktree)
	}
	return nil
}

// operation returns the operation that git has in progress, or "".
func (t tree) operation() (string, error) {
	for _, o := range operations {
		_, err := os.Lstat(filepath.Join(t.dir, o.file))
		if err == nil {
			return o.name, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", conflict(team.ReasonWorktreeUnknown, "read %s: %w", t.dir, err)
		}
	}
	return "", nil
}

// operations lists an operation before those it contains.
var operations = []struct{ file, name string }{
	{"rebase-merge", "rebase"},
	{"rebase-apply", "rebase"},
	{"MERGE_HEAD", "merge"},
	{"CHERRY_PICK_HEAD", "cherry-pick"},
	{"REVERT_HEAD", "revert"},
	{"BISECT_LOG", "bisect"},
}

// record is what Create writes to the admin directory.
type record struct {
	Base    string    `json:"base"`
	Branch  string    `json:"branch,omitempty"`
	Created time.Time `json:"created"`
	SetUp   bool      `json:"setUp,omitempty"`  // Setup has completed
	SetUpAt time.Time `json:"setUpAt,omitzero"` // ignored files not changed since then were made by a setup
	// Made lists other ignored files that a setup made, with the times of their
	// last change in nanoseconds.
	Made  map[string]int64 `json:"made,omitempty"`
	Ports int              `json:"ports,omitempty"` // the first of its range
}

const recordFile = "teamctl.json"

// recorded returns an empty record for a worktree that another program made,
// and if the record cannot be read.
func (t tree) recorded() record {
	rec, err := t.readRecord()
	if err != nil {
		return record{}
	}
	return rec
}

var errDamagedRecord = errors.New("the record of the worktree cannot be read")

func (t tree) readRecord() (rec record, err error) {
	if t.main {
		return rec, nil
	}
	data, err := os.ReadFile(filepath.Join(t.dir, recordFile))
	if err != nil {
		return rec, err
	}
	if json.Unmarshal(data, &rec) != nil {
		return record{}, errDamagedRecord
	}
	return rec, nil
}

// record replaces the record atomically: a process killed while a setup records
// its end must not lose the base. A damaged record is first renamed to
// teamctl.json.corrupt-<milliseconds>.
func (t tree) record(rec record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	path := filepath.Join(t.dir, recordFile)
	if _, err := t.readRecord(); errors.Is(err, errDamagedRecord) {
		if err := os.Rename(path, fmt.Sprintf("%s.corrupt-%d", path, time.Now().UnixMilli())); err != nil {
			return err
		}
	}
	return atomicfile.Write(path, append(data, '\n'), 0o600, false)
}
