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
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
)

// CreateIn describes the worktree to create.
type CreateIn struct {
	Path   string // absolute; must not exist, or be an empty directory
	Branch string // short name of the branch to make there; "" for a detached HEAD
	Base   string // a commit or anything that names one; "" is HEAD of the main worktree
	Reuse  bool   // use an existing Branch as it is if it is not checked out
	// Progress is called from one goroutine during a long checkout.
	Progress func(Progress) `json:"-"`

	lane string // generation of the lane whose scratch worktree this is
}

// Create makes a worktree: it registers it under the repository's lock and
// checks it out outside the lock, in parallel with others. If it fails or ctx
// ends, nothing remains: no directory, no registration, no branch that it made.
// It first cleans up after a Create that was killed. Hooks do not run.
//
// Errors: invalid_path, invalid_branch, unborn_head (invalid); unknown_revision
// (not found); path_exists, worktree_exists, branch_exists, branch_checked_out,
// ref_conflict, lock_file, worktree_locked (conflict); disk_full,
// repository_readonly (unavailable); timeout.
func (r *Repo) Create(ctx context.Context, in CreateIn) (Worktree, error) {
	path, err := r.newPath(in.Path)
	if err != nil {
		return Worktree{}, err
	}
	if err := checkBranch(in.Branch); err != nil {
		return Worktree{}, err
	}
	in.Path = path
	before, err := r.lookUp(ctx, in)
	if err != nil {
		return Worktree{}, err
	}
	w, o, err := r.register(ctx, in, before)
	if err != nil {
		return Worktree{}, err
	}
	r.step("recorded")
	if err := r.checkout(ctx, o, in.Progress); err != nil {
		err = r.explain(ctx, o, err)
		return Worktree{}, r.rollBack(ctx, o, err)
	}
	r.step("checked-out")
	o.end()
	r.step("ended")
	if _, err := os.Lstat(filepath.Join(path, ".gitmodules")); err == nil {
		w.Notes = append(w.Notes, "the repository has submodules; they are not checked out in "+path+
			": "+gitHint(path, "submodule", "update", "--init", "--recursive"))
	}
	return w, nil
}

func (r *Repo) newPath(in string) (string, error) {
	if !filepath.IsAbs(in) {
		return "", invalid(team.ReasonInvalidPath, "the path of a worktree must be absolute: %q", in)
	}
	path, err := cleanPath(in)
	if err != nil {
		return "", err
	}
	if path == r.common || strings.HasPrefix(path, r.common+string(filepath.Separator)) {
		return "", invalid(team.ReasonInvalidPath, "%s is inside the git directory of the repository", path)
	}
	return path, nil
}

// vacant returns an error if path exists and is not an empty directory; stood
// reports whether it is an empty directory.
func vacant(path string) (stood bool, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, team.Errorf(team.CodeUnavailable, "check %s: %w", path, err).WithReason(team.ReasonInvalidPath)
	}
	taken := conflict(team.ReasonPathExists, "%s already exists", path).WithHint("choose another path, or move it away")
	if !info.IsDir() {
		return false, taken
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return false, team.Errorf(team.CodeUnavailable, "read %s: %w", path, err).WithReason(team.ReasonInvalidPath)
	}
	if len(entries) > 0 {
		return false, taken
	}
	return true, nil
}

// register performs the steps that must be serial.
func (r *Repo) register(ctx context.Context, in CreateIn, before lookedUp) (w Worktree, o *op, err error) {
	l, err := r.lock(ctx)
	if err != nil {
		return w, nil, err
	}
	defer func() { _ = l.Unlock() }()
	notes, err := r.repair(ctx)
	if err != nil {
		return w, nil, err
	}
	stood, err := vacant(in.Path)
	if err != nil {
		return w, nil, r.nameWorktree(in.Path, err)
	}
	stale, err := r.pruneStale(ctx, in.Path)
	if err != nil {
		return w, nil, err
	}
	base, tip := before.base, ""
	if len(notes) > 0 || !r.holds(before, in.Branch) {
		if base, tip, err = r.lookup(ctx, in); err != nil {
			return w, nil, err
		}
	}
	if tip != "" && !in.Reuse {
		return w, nil, r.branchTaken(ctx, in.Branch)
	}
	made, err := makeParents(in.Path)
	if err != nil {
		return w, nil, err
	}
	o = &op{Kind: opCreate, Path: in.Path, PathStood: stood, Branch: in.Branch, NewBranch: in.Branch != "" && tip == "", Base: base, parents: made}
	if in.lane != "" {
		o.Scratch, o.env = true, laneEnv(in.lane)
	}
	if err := r.begin(o); err != nil {
		removeEmpty(made)
		return w, nil, noSpace(err)
	}
	r.step("begun")
	if err := r.add(ctx, o, l); err != nil {
		return w, nil, lastCoded(errors.Join(r.undoCreate(context.WithoutCancel(ctx), o), err))
	}
	return Worktree{Path: in.Path, Branch: in.Branch, Base: base, Repo: r.root, Notes: append(notes, stale...)}, o, nil
}

// add registers the worktree and records its base.
func (r *Repo) add(ctx context.Context, o *op, l *filelock.Held) error {
	args := []string{"worktree", "add", "--no-checkout"}
	switch {
	case o.Branch == "":
		args = append(args, "--detach", o.Path, o.Base)
	case o.NewBranch:
		args = append(args, "-b", o.Branch, o.Path, o.Base)
	default:
		args = append(args, o.Path, o.Branch)
	}
	_, err := git(ctx, call{dir: r.root, args: args, keep: []*os.File{o.file, l.File()}, env: o.env,
		conf: []string{"worktree.useRelativePaths=false"}})
	if err != nil {
		return r.explain(ctx, o, err)
	}
	r.step("added")
	t, err := r.tree(o.Path)
	if err != nil {
		return err
	}
	if err := t.record(record{Base: o.Base, Branch: o.Branch, Created: o.Began}); err != nil {
		return noSpace(fmt.Errorf("record the base of %s: %w", o.Path, err))
	}
	return nil
}

// checkout writes the files of the worktree.
func (r *Repo) checkout(ctx context.Context, o *op, tell func(Progress)) error {
	t, err := r.tree(o.Path)
	if err != nil {
		return err
	}
	defer r.filling.Add(-1)
	filling := r.filling.Add(1)
	select {
	case r.checkouts <- struct{}{}:
		defer func() { <-r.checkouts }()
	case <-ctx.Done():
		return ended("checkout", o.Path, ctx.Err())
	}
	t.env = o.env
	c := t.call("reset", "--hard", "--no-recurse-submodules")
	if c.tell = tell; tell == nil {
		c.args = append(c.args, "--quiet")
	}
	// Share the cores with the other checkouts: parallel workers cost a quarter
	// more processor time in total, which pays only on an idle core and from
	// some hundred files on.
	c.conf = []string{"checkout.workers=" + strconv.Itoa(max(1, cap(r.checkouts)/int(filling))), "checkout.thresholdForParallelism=1000"}
	c.keep = []*os.File{o.file}
	_, err = git(ctx, c)
	return err
}

// rollBack undoes a create whose lock has been released.
func (r *Repo) rollBack(ctx context.Context, o *op, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	l, err := r.lock(ctx)
	if err != nil {
		o.leave() // the next Create or Repair undoes it
		return lastCoded(errors.Join(err, cause))
	}
	defer func() { _ = l.Unlock() }()
	return lastCoded(errors.Join(r.undoCreate(ctx, o), cause))
}

// lookedUp holds what was found before taking the lock, so that others do not
// wait for it: the base, and that the branch did not exist.
type lookedUp struct {
	base   string
	vacant bool   // no such branch
	packed string // state of packed-refs at that time
}

// lookUp looks up what register needs. It does not report conflicts:
// register checks for them again under the lock, where they may have
// disappeared.
func (r *Repo) lookUp(ctx context.Context, in CreateIn) (lookedUp, error) {
	packed := r.packedRefs()
	base, tip, err := r.lookup(ctx, in)
	if err != nil {
		return lookedUp{}, err
	}
	return lookedUp{base: base, vacant: tip == "", packed: packed}, nil
}

// holds reports whether the branch still does not exist: no ref file has been
// created for it since, and packed-refs is unchanged.
func (r *Repo) holds(before lookedUp, branch string) bool {
	if !before.vacant || before.packed != r.packedRefs() {
		return false
	}
	if branch == "" {
		return true
	}
	if _, err := os.Lstat(filepath.Join(r.common, "reftable")); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_, err := os.Lstat(filepath.Join(r.common, "refs", "heads", filepath.FromSlash(branch)))
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir)
}

// packedRefs returns a string that changes whenever packed-refs changes.
func (r *Repo) packedRefs() string {
	info, err := os.Stat(filepath.Join(r.common, "packed-refs"))
	if err != nil {
		return err.Error()
	}
	var inode uint64
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = st.Ino // git replaces it by rename
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size(), inode)
}

// lookup resolves the base and the branch, from ref files where possible,
// otherwise with one process; tip is "" if the branch does not exist.
func (r *Repo) lookup(ctx context.Context, in CreateIn) (base, tip string, err error) {
	if head := r.headRef(); head != "" && (in.Base == "" || in.Base == head) {
		known := in.Branch == ""
		if !known {
			tip, known = r.branchRef(in.Branch)
		}
		if known {
			return head, tip, nil
		}
	}
	rev := in.Base
	if rev == "" {
		rev = "HEAD"
	} else if err := checkRev(rev); err != nil {
		return "", "", err
	}
	ask := rev + "^{commit}\n"
	if in.Branch != "" {
		ask += "refs/heads/" + in.Branch + "\n"
	}
	out, err := git(ctx, call{dir: r.root, read: true, args: []string{"cat-file", "--batch-check"}, stdin: []byte(ask)})
	if err != nil {
		return "", "", failed("look up "+rev+" in "+r.root, err)
	}
	answers := lines(out, '\n')
	if len(answers) != strings.Count(ask, "\n") {
		return "", "", team.Errorf(team.CodeInternal, "look up %s in %s: git answered %q", rev, r.root, out).WithReason(team.ReasonGitFailed)
	}
	if base = commitIn(answers[0]); base == "" {
		if in.Base == "" {
			_, err := r.Head(ctx)
			return "", "", err
		}
		return "", "", unknownRev(r.root, in.Base)
	}
	if in.Branch != "" {
		tip = commitIn(answers[1])
	}
	return base, tip, nil
}

// commitIn parses one answer of cat-file, "<sha> commit <size>"; it returns ""
// for any other.
func commitIn(answer string) string {
	f := strings.Fields(answer)
	if len(f) == 3 && f[1] == "commit" {
		return f[0]
	}
	return ""
}

// makeParents makes the directories above path and returns those that it made,
// innermost first.
func makeParents(path string) ([]string, error) {
	var made []string
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		made = append(made, dir)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		removeEmpty(made)
		return nil, noSpace(fmt.Errorf("make the directory for %s: %w", path, err))
	}
	return made, nil
}

func removeEmpty(dirs []string) {
	for _, d := range dirs {
		_ = os.Remove(d)
	}
}

// checkBranch rejects names that git would reject or interpret as something
// else (git-check-ref-format(1)); "" is a detached HEAD.
func checkBranch(name string) error {
	if name == "" {
		return nil
	}
	bad := func(why string) error {
		return invalid(team.ReasonBadBranch, "%q cannot be the name of a branch: %s", name, why).
			WithHint("use letters, digits, '-', '_', '.' and '/'")
	}
	for _, c := range name {
		if c <= ' ' || c == 0x7f || strings.ContainsRune("~^:?*[\\", c) {
			return bad(fmt.Sprintf("it contains %q", c))
		}
	}
	switch {
	case name == "HEAD" || name == "@":
		return bad("it means something else")
	case strings.HasPrefix(name, "-"):
		return bad("it begins with a dash")
	case strings.HasSuffix(name, "."):
		return bad("it ends with a dot")
	case strings.Contains(name, "..") || strings.Contains(name, "@{"):
		return bad("it contains .. or @{")
	}
	for _, part := range strings.Split(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return bad("a part of it is empty, begins with a dot or ends with .lock")
		}
	}
	return nil
}

// age returns the time since a file was written, for messages.
func age(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return "unknown"
	}
	return time.Since(info.ModTime()).Round(time.Second).String()
}
