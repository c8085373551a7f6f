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

// Worktree is one member's worktree, as Create made it.
type Worktree struct {
	Path   string   `json:"path"`
	Branch string   `json:"branch,omitempty"` // short name; "" is a detached HEAD
	Base   string   `json:"base,omitempty"`   // the commit it began at; "" when it was not recorded
	Repo   string   `json:"repo"`             // Repo.Root
	Notes  []string `json:"notes,omitempty"`  // for the person: submodules, what was repaired
}

// tree is a worktree that was found to be one of ours: its .git file names an
// admin directory of this repository, and that one names it back. git is run
// with both given, so a .git file that goes missing never makes git climb to a
// repository above.
type tree struct {
	path string // where the files are
	at   string // where it is registered; another path only while it is moved aside
	dir  string // its git directory: <common>/worktrees/<id>, or common for the main one
	main bool
	env  []string // added to the environment of git
}

// OpenWorktree finds the repository of the worktree at path and what is known
// of it. Errors are those of OpenRepo, and not_a_worktree (invalid).
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
		return tree{}, notFound(ReasonPathMissing, "the worktree %s is gone", p).
			WithHint("git -C " + r.root + " worktree list")
	case err != nil:
		return tree{}, conflict(ReasonUnknown, "look at the worktree %s: %w", p, err)
	case !info.IsDir():
		return tree{}, invalid(ReasonNotWorktree, "%s is not a directory", p)
	case p == r.root && !r.bare:
		return tree{path: p, at: p, dir: r.common, main: true}, nil
	}
	admin, err := adminOf(p)
	if err != nil {
		if at, e := r.adminAt(p); e == nil && at != "" { // registered all the same
			err = team.Errorf(team.CodeOf(err), "%w", err).WithReason(team.ReasonOf(err)).
				WithHint("git -C " + r.root + " worktree repair") // with the path it looks for the .git file
		}
		return tree{}, err
	}
	if filepath.Dir(admin) != filepath.Join(r.common, "worktrees") {
		return tree{}, invalid(ReasonNotWorktree, "%s is not a worktree of %s: its git directory is %s", p, r.root, admin)
	}
	back, err := backlink(admin)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tree{}, conflict(ReasonUnknown, "%s is a worktree whose registration is gone", p).
			WithHint("git -C " + r.root + " worktree repair " + p)
	case err != nil:
		return tree{}, conflict(ReasonUnknown, "read the registration of %s: %w", p, err)
	case back != p:
		return tree{}, conflict(ReasonUnknown, "%s is a copy of, or was moved from, the worktree %s", p, back).
			WithHint("git -C " + r.root + " worktree repair " + p)
	}
	return tree{path: p, at: p, dir: admin}, nil
}

// adminOf is the git directory that the .git file of a linked worktree names.
func adminOf(path string) (string, error) {
	gitfile := filepath.Join(path, ".git")
	info, err := os.Lstat(gitfile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", invalid(ReasonNotWorktree, "%s is not a worktree: it has no .git file", path)
	}
	if err != nil {
		return "", conflict(ReasonUnknown, "look at %s: %w", gitfile, err)
	}
	if !info.Mode().IsRegular() {
		return "", invalid(ReasonNotWorktree, "%s is not a linked worktree: its .git is no file", path)
	}
	data, err := os.ReadFile(gitfile)
	if err != nil {
		return "", conflict(ReasonUnknown, "read %s: %w", gitfile, err)
	}
	to, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), "gitdir: ")
	if !ok {
		return "", invalid(ReasonNotWorktree, "%s is not a worktree: %s names no git directory", path, gitfile)
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(path, to)
	}
	// The admin directory itself may be gone; what leads to it must be real.
	parent, err := filepath.EvalSymlinks(filepath.Dir(to))
	if err != nil {
		parent = filepath.Clean(filepath.Dir(to))
	}
	return filepath.Join(parent, filepath.Base(to)), nil
}

// RepoOf is the root of the repository that the linked worktree at path names, if
// both it and the registration are there, whatever path that one names; else "".
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

// backlink is the worktree that an admin directory belongs to.
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

// cleanPath resolves the symlinks above the last component. The last one is
// left alone: a link in place of a worktree is never followed.
func cleanPath(path string) (string, error) {
	p, err := filepath.Abs(path)
	if err != nil {
		return "", invalid(ReasonBadPath, "resolve %q: %w", path, err)
	}
	if path == "" || strings.ContainsAny(path, "\n\x00") {
		return "", invalid(ReasonBadPath, "%q cannot be the path of a worktree", path)
	}
	var rest []string
	for dir := filepath.Dir(p); ; dir = filepath.Dir(dir) {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return filepath.Join(append([]string{real}, append(rest, filepath.Base(p))...)...), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return "", invalid(ReasonBadPath, "resolve %s: %w", p, err)
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

// head is the commit at HEAD.
func (t tree) head(ctx context.Context) (string, error) {
	out, err := t.read(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if exitStatus(err) == 1 {
		return "", invalid(ReasonUnbornHead, "the worktree %s has no commit yet", t.path)
	}
	if err != nil {
		return "", failed("read HEAD of "+t.path, err)
	}
	return oneLine(out), nil
}

// branch is the short name of the branch at HEAD, "" when it is detached.
func (t tree) branch(ctx context.Context) (string, error) {
	out, err := t.read(ctx, "symbolic-ref", "--quiet", "HEAD")
	if exitStatus(err) == 1 {
		return "", nil
	}
	if err != nil {
		return "", failed("read HEAD of "+t.path, err)
	}
	return strings.TrimPrefix(oneLine(out), "refs/heads/"), nil
}

// notMain refuses what would change the person's own checkout.
func (t tree) notMain(verb string) error {
	if t.main {
		return team.Errorf(team.CodeDenied, "%s in %s: it is the main worktree, which is the person's own", verb, t.path).
			WithReason(ReasonMainWorktree)
	}
	return nil
}

// operation is what git is in the middle of there, or "".
func (t tree) operation() (string, error) {
	for _, o := range operations {
		_, err := os.Lstat(filepath.Join(t.dir, o.file))
		if err == nil {
			return o.name, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", conflict(ReasonUnknown, "look into %s: %w", t.dir, err)
		}
	}
	return "", nil
}

// operations, the one that contains the other first.
var operations = []struct{ file, name string }{
	{"rebase-merge", "rebase"},
	{"rebase-apply", "rebase"},
	{"MERGE_HEAD", "merge"},
	{"CHERRY_PICK_HEAD", "cherry-pick"},
	{"REVERT_HEAD", "revert"},
	{"BISECT_LOG", "bisect"},
}

// record is what Create writes into the admin directory.
type record struct {
	Base    string    `json:"base"`
	Branch  string    `json:"branch,omitempty"`
	Created time.Time `json:"created"`
	SetUp   bool      `json:"setUp,omitempty"`  // Setup was completed
	SetUpAt time.Time `json:"setUpAt,omitzero"` // ignored files that were changed no later are a set-up's
	// Made are further ignored files that a set-up made, and the times of their last change
	// in nanoseconds.
	Made  map[string]int64 `json:"made,omitempty"`
	Ports int              `json:"ports,omitempty"` // the first of its range
}

const recordFile = "teamctl.json"

// recorded is empty for a worktree that somebody else made, and where the record cannot
// be read.
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

// record writes it whole or not at all: a process that is killed while a setup notes
// its end must not take the base with it. One that is damaged is moved aside first, as
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
