package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// refsRoot is the prefix of all refs of teamctl, rescueRoot that of rescue
// snapshots.
const (
	refsRoot   = "refs/teamctl/"
	rescueRoot = refsRoot + "rescue/"
)

// snapshotMark starts the message of every snapshot; Restore checks for it.
const snapshotMark = "teamctl snapshot"

// largeFile is the size from which a note reports a file in a snapshot: it
// stays in the repository until the snapshot is dropped.
const largeFile = 50 << 20

// large returns notes about the large files of a snapshot.
func (t tree) large(f facts) (notes []string) {
	paths := slices.Clone(f.ignored)
	for _, c := range f.status.Changes {
		paths = append(paths, c.Path)
	}
	for _, p := range paths {
		info, err := os.Lstat(filepath.Join(t.path, filepath.FromSlash(p)))
		if err == nil && info.Mode().IsRegular() && info.Size() >= largeFile {
			notes = append(notes, fmt.Sprintf("the snapshot contains %s (%d MiB)", p, info.Size()>>20))
		}
	}
	return notes
}

// snapshotTries is the number of attempts: an agent may write while its
// worktree is being read.
const snapshotTries = 3

// snapshot saves the complete state of a worktree: HEAD, index, tracked and
// untracked files that are not ignored, byte for byte unless a filter such as LFS
// converts them. Index and files are not touched. The answer is a commit; for a
// clean worktree it is HEAD itself. The contents of repositories inside the worktree
// are not in it; Status names them. With durable, every object is on disk
// before it returns, and the snapshot also holds the ignored files that are
// work and the exact bytes of unchanged files, so that the worktree may be
// removed.
func (r *Repo) snapshot(ctx context.Context, t tree, durable bool, why string) (sha string, err error) {
	for range snapshotTries {
		if sha, err = r.trySnapshot(ctx, t, durable, why); err == nil || ctx.Err() != nil {
			return sha, err
		}
	}
	return "", err
}

func (r *Repo) trySnapshot(ctx context.Context, t tree, durable bool, why string) (string, error) {
	index, _, drop, err := r.revealed(ctx, t)
	if err != nil {
		return "", err
	}
	defer drop()
	st, err := t.statusWith(ctx, index)
	if err != nil {
		return "", err
	}
	var ignored []string
	if durable {
		if ignored, err = r.ignoredWork(ctx, t); err != nil {
			return "", err
		}
	}
	if st.Clean() && len(ignored) == 0 && st.Head != "" {
		return st.Head, nil
	}
	return r.commitTree(ctx, t, snapshotIn{index: index, head: st.Head, changes: st.Changes, ignored: ignored, durable: durable, why: why})
}

// snapshotIn is the material of a snapshot.
type snapshotIn struct {
	index   string            // temporary; becomes the index of the working tree commit
	head    string            // "" on a branch without commits
	changes []team.FileChange // as git status reports them with index
	ignored []string          // ignored files that are work
	durable bool
	why     string
}

// commitTree makes the commit of a snapshot.
func (r *Repo) commitTree(ctx context.Context, t tree, in snapshotIn) (string, error) {
	var conf []string
	if in.durable {
		conf = []string{"core.fsync=all"}
	}
	wrap := func(err error) error { return failed("snapshot "+t.at, err) }
	staged, err := r.indexTree(ctx, t.call(), in.index, conf)
	if err != nil {
		return "", wrap(err)
	}
	r.step("snapshot-begun")
	exact, err := t.stage(ctx, in, conf)
	if err != nil {
		return "", wrap(err)
	}
	work, err := r.indexTree(ctx, t.call(), in.index, conf)
	if err != nil {
		return "", wrap(err)
	}
	r.step("snapshot-staged")
	var parents []string
	if in.head != "" {
		parents = []string{in.head}
	}
	more := t.pending(ctx)
	if id, err := r.exact(ctx, t, in, exact, conf); err != nil {
		return "", wrap(err)
	} else if id != "" {
		more = append(more, id)
	}
	of := filepath.Base(t.at) + ", " + in.why
	index, err := t.commitOf(ctx, staged, append(parents[:len(parents):len(parents)], more...), snapshotMark+": index of "+of, conf)
	if err != nil {
		return "", wrap(err)
	}
	sha, err := t.commitOf(ctx, work, append(parents[:len(parents):len(parents)], index), snapshotMark+" of "+of, conf)
	r.step("snapshot-made")
	return sha, wrap(err)
}

// pending returns the commits that a running operation works on, such as the
// other side of a merge; nothing else may reach them.
func (t tree) pending(ctx context.Context) []string {
	var list []string
	_, err := os.Lstat(filepath.Join(t.common(), "reftable"))
	files := errors.Is(err, fs.ErrNotExist) // each of them is a file
	for _, name := range []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"} {
		if _, err := os.Lstat(filepath.Join(t.dir, name)); files && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		out, err := t.read(ctx, "rev-parse", "--verify", "--quiet", name+"^{commit}")
		if err == nil {
			list = append(list, oneLine(out))
		}
	}
	return list
}

func (t tree) commitOf(ctx context.Context, treeID string, parents []string, message string, conf []string) (string, error) {
	c := t.call("commit-tree", treeID)
	for _, p := range parents {
		c.args = append(c.args, "-p", p)
	}
	c.stdin, c.conf = []byte(message+"\n"), conf
	c.env = append(c.env, identity(defaultName, defaultEmail)...)
	out, err := git(ctx, c)
	return oneLine(out), err
}

// stage updates the temporary index to what is on disk. It adds the bytes of
// files without the line ending conversions of `git add`.
//
// It returns the files that attributes convert.
func (t tree) stage(ctx context.Context, in snapshotIn, conf []string) (exact []exactFile, err error) {
	var info, byGit bytes.Buffer
	var regular []string
	modes := map[string]string{}
	for _, c := range in.changes {
		full := filepath.Join(t.path, filepath.FromSlash(c.Path))
		if c.Work == "." || c.Nested() {
			continue
		}
		if strings.HasPrefix(c.Sub, "S") {
			if strings.HasPrefix(c.Sub, "SC") { // its HEAD moved; its contents are not part of the snapshot
				byGit.WriteString(c.Path + "\x00")
			}
			continue
		}
		fi, err := os.Lstat(full)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir), err == nil && fi.IsDir():
			fmt.Fprintf(&info, "0 %s\t%s\x00", strings.Repeat("0", 40), c.Path)
		case err != nil:
			return nil, err
		case fi.Mode().IsRegular():
			regular = append(regular, c.Path)
			modes[c.Path] = fileMode(c, fi)
		default: // a symlink
			byGit.WriteString(c.Path + "\x00")
		}
	}
	list, err := t.conversions(ctx, regular)
	if err != nil {
		return nil, err
	}
	var raw []string
	converted := map[string]bool{}
	for i, p := range regular {
		if list[i].filtered {
			byGit.WriteString(p + "\x00")
			continue
		}
		raw = append(raw, p)
		converted[p] = list[i].changes
	}
	ids, err := t.hash(ctx, raw, conf)
	if err != nil {
		return nil, err
	}
	for i, p := range raw {
		fmt.Fprintf(&info, "%s %s\t%s\x00", modes[p], ids[i], p)
		if converted[p] {
			exact = append(exact, exactFile{path: p, mode: modes[p], id: ids[i]})
		}
	}
	for _, step := range []struct {
		args  []string
		stdin []byte
	}{
		{[]string{"update-index", "-z", "--index-info"}, info.Bytes()},
		{[]string{"update-index", "--add", "--remove", "--replace", "-z", "--stdin"}, byGit.Bytes()},
	} {
		if len(step.stdin) == 0 {
			continue
		}
		c := t.call(step.args...)
		c.env = append(c.env, "GIT_INDEX_FILE="+in.index)
		c.stdin, c.conf = step.stdin, conf
		if _, err := git(ctx, c); err != nil {
			return nil, err
		}
	}
	return exact, nil
}

// fileMode returns the mode of a regular file as git sees it, if status reports
// it (on a file system without executable bits git ignores the bit on disk).
func fileMode(c team.FileChange, fi fs.FileInfo) string {
	if c.Mode == "100644" || c.Mode == "100755" {
		return c.Mode
	}
	if fi.Mode()&0o100 != 0 {
		return "100755"
	}
	return "100644"
}

// hash stores the contents of files and returns their object ids.
func (t tree) hash(ctx context.Context, paths []string, conf []string) ([]string, error) {
	ids := make([]string, len(paths))
	var batch []int
	c := t.call("hash-object", "-w", "--no-filters", "--stdin-paths")
	c.conf = conf
	for i, p := range paths {
		if !strings.Contains(p, "\n") && !strings.HasSuffix(p, "\r") && !strings.HasPrefix(p, `"`) {
			c.stdin = append(append(c.stdin, p...), '\n')
			batch = append(batch, i)
			continue
		}
		// The list has one path per line, perhaps with CR LF; this path does not fit.
		one := t.call("hash-object", "-w", "--no-filters", "--", p)
		one.conf = conf
		out, err := git(ctx, one)
		if err != nil {
			return nil, err
		}
		ids[i] = oneLine(out)
	}
	if len(batch) == 0 {
		return ids, nil
	}
	out, err := git(ctx, c)
	if err != nil {
		return nil, err
	}
	got := lines(out, '\n')
	if len(got) != len(batch) {
		return nil, fmt.Errorf("git hash-object gave %d ids for %d files", len(got), len(batch))
	}
	for k, i := range batch {
		ids[i] = got[k]
	}
	return ids, nil
}

// rescueRef keeps a snapshot under a ref of its own and returns the ref.
func (r *Repo) rescueRef(ctx context.Context, teamKey, agent, sha string) (string, error) {
	return r.keepAt(ctx, rescueRoot, teamKey, agent, sha)
}

// checkOwner rejects names that cannot be part of a ref.
func checkOwner(teamKey, agent string) error {
	for _, n := range []string{teamKey, agent} {
		if n == "" || strings.Contains(n, "/") || checkBranch(n) != nil {
			return team.Errorf(team.CodeInvalid, "team %q or agent %q cannot be part of a ref name", teamKey, agent).
				WithReason(team.ReasonBadInput)
		}
	}
	return nil
}
