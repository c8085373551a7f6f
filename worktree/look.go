package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/team"
)

// LookIn selects what Look reads.
type LookIn struct {
	Paths  []string
	Target string // branch or commit to compare with; "" for none
	Disk   bool   // add up disk usage, which walks every file
}

// Look reads many worktrees in parallel, up to twice the number of cores at
// once. The result has one view per path, in order.
func (r *Repo) Look(ctx context.Context, in LookIn) ([]team.WorktreeView, error) {
	target, remote := "", false
	if in.Target != "" {
		var err error
		if target = r.plainTip(in.Target); target == "" {
			target, err = r.tipOf(ctx, in.Target)
		}
		if err != nil {
			return nil, err
		}
		if remote, err = r.hasRemotes(ctx); err != nil {
			return nil, err
		}
	}
	views := make([]team.WorktreeView, len(in.Paths))
	all := func(f func(*team.WorktreeView) error) {
		each(len(views), func(i int) {
			if v := &views[i]; v.Err == nil {
				v.Err = f(v)
			}
		})
	}
	for i := range views {
		views[i].Path = in.Paths[i]
	}
	all(func(v *team.WorktreeView) error { return r.view(ctx, in, v) })
	var pairs []pair
	for _, v := range views {
		if v.Err == nil && v.Head != "" {
			pairs = append(pairs, basePair(v.WorktreeStatus), pair{orHead(target, v.Head), v.Head})
		}
	}
	counts, err := r.countPairs(ctx, pairs)
	if err != nil {
		return nil, err
	}
	all(func(v *team.WorktreeView) error {
		countSince(&v.WorktreeStatus, counts)
		return r.compare(ctx, v, target, counts, remote)
	})
	for i := range views {
		if v := &views[i]; v.Err != nil {
			v.Path, v.Problem = in.Paths[i], v.Err.Error()
		}
	}
	return views, ctx.Err()
}

// StatusAll is Status for many worktrees in parallel. A worktree that cannot be
// read has an error at its index.
func (r *Repo) StatusAll(ctx context.Context, paths []string) ([]team.WorktreeStatus, []error) {
	list, errs := make([]team.WorktreeStatus, len(paths)), make([]error, len(paths))
	each(len(paths), func(i int) {
		t, err := r.tree(paths[i])
		if err == nil {
			list[i], err = t.status(ctx)
		}
		errs[i] = err
	})
	var pairs []pair
	for i := range list {
		if errs[i] == nil {
			pairs = append(pairs, basePair(list[i]))
		}
	}
	counts, err := r.countPairs(ctx, pairs)
	for i := range list {
		switch {
		case errs[i] != nil:
		case err != nil:
			list[i], errs[i] = team.WorktreeStatus{}, err
		default:
			countSince(&list[i], counts)
		}
	}
	return list, errs
}

// basePair returns the commits to compare for a status.
func basePair(s team.WorktreeStatus) pair {
	if s.Base == "" || s.Head == "" {
		return pair{}
	}
	return pair{s.Base, s.Head}
}

// countSince sets the number of commits since the base.
func countSince(s *team.WorktreeStatus, counts map[pair]sides) {
	if p := basePair(*s); p != (pair{}) {
		s.Behind, s.Ahead = counts[p].left, counts[p].right
	}
}

func orHead(target, head string) string {
	if target == "" {
		return head
	}
	return target
}

// each calls f for 0 to n-1 in parallel and returns when all calls have
// returned.
func each(n int, f func(int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(n, 2*runtime.NumCPU()) { // git sometimes waits for the disk
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range next {
				f(i)
			}
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// view reads one worktree on its own.
func (r *Repo) view(ctx context.Context, in LookIn, v *team.WorktreeView) error {
	t, err := r.tree(v.Path)
	if err != nil {
		return err
	}
	if v.WorktreeStatus, err = t.status(ctx); err != nil {
		return err
	}
	v.ToTarget, v.FromTarget, v.Unpushed = -1, -1, -1
	if in.Disk {
		if v.DiskBytes, err = diskUse(t.path); err != nil {
			return conflict(team.ReasonWorktreeUnknown, "count the files of %s: %w", t.at, err)
		}
	}
	return nil
}

// compare sets the differences between a worktree and the target.
func (r *Repo) compare(ctx context.Context, v *team.WorktreeView, target string, counts map[pair]sides, remote bool) (err error) {
	if target == "" || v.Head == "" {
		return nil
	}
	n := counts[pair{target, v.Head}]
	v.FromTarget, v.ToTarget = n.left, n.right
	if remote {
		out, err := r.read(ctx, "rev-list", "--count", v.Head, "--not", "--remotes")
		if err != nil {
			return failed("count the unpushed commits of "+v.Path, err)
		}
		if v.Unpushed, err = strconv.Atoi(oneLine(out)); err != nil {
			return team.Errorf(team.CodeInternal, "count the unpushed commits of %s: git answered %q", v.Path, out).WithReason(team.ReasonGitFailed)
		}
	}
	if v.ToTarget > 0 && v.FromTarget > 0 {
		_, v.Conflicts, err = r.mergeTree(ctx, target, v.Head)
	}
	if errors.Is(err, errNoMergeTree) {
		return nil
	}
	v.Foreseen = err == nil
	return err
}

// hasRemotes reports whether the repository has remote-tracking branches.
func (r *Repo) hasRemotes(ctx context.Context) (bool, error) {
	const dir = "refs/remotes"
	if some, known := anyRefBelow(r.common, dir); known {
		return some, nil
	}
	out, err := r.read(ctx, "for-each-ref", "--count=1", "--format=x", dir+"/")
	return len(out) > 0, failed("list the remotes of "+r.root, err)
}

// diskUse returns the disk space used by the files of a directory, in bytes.
func diskUse(dir string) (int64, error) {
	var sum int64
	seen := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if p != dir {
				return nil // deleted meanwhile, or not readable
			}
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			if st.Nlink > 1 && !d.IsDir() {
				if seen[st.Ino] {
					return nil
				}
				seen[st.Ino] = true
			}
			sum += st.Blocks * 512
		}
		return nil
	})
	return sum, err
}

// errNoMergeTree means that git cannot merge without a working tree (before 2.38).
var errNoMergeTree = errors.New("git merge-tree has no --write-tree")

// usageStatus is the exit status of git for options that it does not have.
const usageStatus = 129

// mergeTree merges two commits without a working tree, or returns errNoMergeTree.
// tree is "" if there are conflicts.
func (r *Repo) mergeTree(ctx context.Context, ours, theirs string) (tree string, conflicts []string, err error) {
	if r.noMergeTree.Load() {
		return "", nil, errNoMergeTree
	}
	out, err := git(ctx, call{dir: r.root, args: []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs},
		conf: []string{"merge.renames=true"}})
	if exitStatus(err) == usageStatus {
		r.noMergeTree.Store(true)
		return "", nil, errNoMergeTree
	}
	if err != nil && exitStatus(err) != 1 {
		return "", nil, failed("merge "+short(theirs)+" into "+short(ours), err)
	}
	fields := lines(out, 0)
	if len(fields) == 0 || len(fields[0]) < 40 {
		return "", nil, team.Errorf(team.CodeInternal, "merge %s into %s: git answered %q", short(theirs), short(ours), out).WithReason(team.ReasonGitFailed)
	}
	if err == nil {
		return fields[0], nil, nil
	}
	for _, f := range fields[1:] {
		if f != "" && (len(conflicts) == 0 || conflicts[len(conflicts)-1] != f) {
			conflicts = append(conflicts, f)
		}
	}
	if len(conflicts) == 0 {
		conflicts = []string{"(git names no file)"}
	}
	return "", conflicts, nil
}

// Touched has the files that a worktree has changed since its branch began.
type Touched struct {
	Head             string
	Committed, Dirty []string
}

// Touched returns what a worktree has changed.
func (r *Repo) Touched(ctx context.Context, path string) (Touched, error) {
	t, err := r.tree(path)
	if err != nil {
		return Touched{}, err
	}
	st, err := t.status(ctx)
	if err != nil {
		return Touched{}, err
	}
	return t.touched(ctx, st)
}

// touched is Touched for a status.
func (t tree) touched(ctx context.Context, st team.WorktreeStatus) (w Touched, err error) {
	w.Head = st.Head
	for _, c := range st.Changes {
		if !c.Nested() {
			w.Dirty = append(w.Dirty, c.Path)
		}
	}
	if st.Base == "" || st.Head == "" || st.Base == st.Head {
		return w, nil
	}
	// Of a branch that was set back before its base this lists nothing.
	out, err := t.read(ctx, "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", st.Base+"..."+st.Head, "--")
	if exitStatus(err) == 128 { // no common history
		w.Committed, err = t.filesOf(ctx, st.Base, st.Head)
		return w, err
	}
	w.Committed = lines(out, 0)
	return w, failed("list the files of "+t.at, err)
}

// Diff returns what a worktree has changed since its branch began, commits and
// uncommitted work together, as git diff formats it, and the untracked files.
// With stat it is a summary.
func (r *Repo) Diff(ctx context.Context, path string, stat bool) (text string, untracked []string, err error) {
	return r.DiffFrom(ctx, path, "", stat)
}

// DiffFrom is Diff since another commit than the one that the branch began at; "HEAD" shows
// uncommitted work only.
func (r *Repo) DiffFrom(ctx context.Context, path, from string, stat bool) (text string, untracked []string, err error) {
	t, err := r.tree(path)
	if err != nil {
		return "", nil, err
	}
	st, err := t.status(ctx)
	if err != nil {
		return "", nil, err
	}
	for _, c := range st.Changes {
		if c.Work == "?" {
			untracked = append(untracked, c.Path)
		}
	}
	if st.Head == "" {
		return "", untracked, nil
	}
	text, err = t.diff(ctx, stat, cmp.Or(from, st.Base, "HEAD"))
	return text, untracked, err
}

// DiffTo returns what changed between two commits, as git diff formats it.
func (r *Repo) DiffTo(ctx context.Context, path, from, to string, stat bool) (text string, err error) {
	t, err := r.tree(path)
	if err != nil {
		return "", err
	}
	return t.diff(ctx, stat, from, to)
}

// plainDiff is a git diff that people and programs read: screens take it apart,
// and git apply takes a saved one. So its form is git's own, whatever the
// person's configuration makes of a diff, and it runs no program that the
// configuration names for files. What changes no form, as the order of files
// or the number of lines around a change, is the person's.
var plainDiff = []string{"diff", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short"}

func (t tree) diff(ctx context.Context, stat bool, revs ...string) (string, error) {
	args := slices.Clone(plainDiff)
	if stat {
		args = append(args, "--stat=120")
	}
	out, err := t.read(ctx, append(append(args, revs...), "--")...)
	return string(out), failed("diff "+t.at, err)
}

// File returns a file as a commit has it, or false if the commit has no such file.
func (r *Repo) File(ctx context.Context, path, rev, file string) (data []byte, ok bool, err error) {
	t, err := r.tree(path)
	if err != nil {
		return nil, false, err
	}
	data, err = t.read(ctx, "cat-file", "blob", rev+":"+file)
	if exitStatus(err) == 128 {
		return nil, false, nil
	}
	return data, err == nil, failed("read "+file+" of "+rev, err)
}

// TipBefore returns the newest commit of a worktree's branch that is not newer than at, or
// the commit that the branch began at.
func (r *Repo) TipBefore(ctx context.Context, path string, at time.Time) (string, error) {
	t, err := r.tree(path)
	if err != nil {
		return "", err
	}
	st, err := t.status(ctx)
	if err != nil || st.Base == "" || st.Head == "" {
		return st.Base, err
	}
	out, err := t.read(ctx, "rev-list", "-1", fmt.Sprintf("--before=%d", at.Unix()), st.Base+".."+st.Head)
	return cmp.Or(oneLine(out), st.Base), failed("list the commits of "+t.at, err)
}

// MainBranch returns the branch checked out in the main worktree, or "".
func (r *Repo) MainBranch(ctx context.Context) (string, error) {
	out, err := r.read(ctx, "symbolic-ref", "--quiet", "HEAD") // --short writes heads/NAME where a tag has the name
	if exitStatus(err) == 1 {
		return "", nil
	}
	return strings.TrimPrefix(oneLine(out), "refs/heads/"), failed("read HEAD of "+r.root, err)
}

// Dirs returns the directories of a worktree that contain tracked files, those
// nearest to the root first, at most most; the root is always included.
func (r *Repo) Dirs(ctx context.Context, path string, most int) ([]string, error) {
	t, err := r.tree(path)
	if err != nil {
		return nil, err
	}
	if entries, plain := plainEntries(filepath.Join(t.dir, "index")); plain {
		files := make([]string, len(entries))
		for i, e := range entries {
			files[i] = e.path
		}
		return DirsOf(t.path, files, most), nil
	}
	out, err := t.read(ctx, "ls-files", "-z")
	if err != nil {
		return nil, failed("list the files of "+t.path, err)
	}
	return DirsOf(t.path, lines(out, 0), most), nil
}

// DirsOf returns the directories of files, given relative to root, and all
// their parents up to root: those nearest to root first, at most most.
func DirsOf(root string, files []string, most int) []string {
	seen := map[string]bool{".": true}
	dirs := []string{"."}
	for _, f := range files {
		for d := filepath.Dir(filepath.FromSlash(f)); !seen[d]; d = filepath.Dir(d) {
			seen[d] = true
			dirs = append(dirs, d)
		}
	}
	depth := func(d string) int {
		if d == "." {
			return 0
		}
		return 1 + strings.Count(d, string(filepath.Separator))
	}
	slices.SortFunc(dirs, func(a, b string) int {
		return cmp.Or(cmp.Compare(depth(a), depth(b)), strings.Compare(a, b))
	})
	dirs = dirs[:min(len(dirs), max(most, 1))]
	for i, d := range dirs {
		dirs[i] = filepath.Join(root, d)
	}
	return dirs
}
