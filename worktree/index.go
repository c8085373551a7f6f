package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/teamctl/teamctl/team"
)

// tempIndex returns a copy of the index file from ("" for an empty one) that
// git may write to; drop removes it. The copy keeps the original's timestamp:
// git compares file times with it to detect a change within one clock tick. It
// lies in a directory of its own, which is locked while its process uses it.
func (r *Repo) tempIndex(from string) (path string, drop func(), err error) {
	if err := os.MkdirAll(r.own("ops"), 0o700); err != nil {
		return "", nil, noSpace(err)
	}
	var held *os.File
	for held == nil {
		dir, err := os.MkdirTemp(r.own(""), "index.*")
		if err != nil {
			return "", nil, noSpace(err)
		}
		if held, err = lockIndex(dir); err != nil {
			return "", nil, noSpace(err)
		}
	}
	path = filepath.Join(held.Name(), "index")
	drop = func() {
		_ = os.RemoveAll(held.Name())
		_ = held.Close()
	}
	if from == "" {
		return path, drop, nil // git treats a missing index as empty and an empty file as corrupt
	}
	if err := copyIndex(path, from); err != nil {
		drop()
		return "", nil, noSpace(fmt.Errorf("copy the index %s: %w", from, err))
	}
	return path, drop, nil
}

// copyIndex copies an index file with its timestamp. One that does not exist has
// no copy. git replaces its index by rename, so the opened file is always a
// complete index.
func copyIndex(path, from string) error {
	src, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, src)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	info, err := src.Stat()
	if err != nil {
		return err
	}
	return os.Chtimes(path, info.ModTime(), info.ModTime())
}

// lockIndex locks the directory of a temporary index until the file is closed.
// The result is nil if another process has locked or removed it.
func lockIndex(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case err == nil:
		here, err := f.Stat()
		there, gone := os.Lstat(dir)
		if err == nil && gone == nil && os.SameFile(here, there) {
			return f, nil
		}
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = nil
	}
	return nil, errors.Join(err, f.Close())
}

// sweepIndexes removes the temporary indexes of killed processes: those that are
// not locked.
func (r *Repo) sweepIndexes() {
	entries, err := os.ReadDir(r.own(""))
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), "index.") {
			continue
		}
		dir := filepath.Join(r.own(""), e.Name())
		if f, err := lockIndex(dir); err == nil && f != nil {
			_ = os.RemoveAll(dir)
			_ = f.Close()
		}
	}
}

// entry is one line of `git ls-files -v -s`.
type entry struct {
	flag, mode, sha, stage, path string
}

// entries returns what is in an index file.
func (t tree) entries(ctx context.Context, index string) ([]entry, error) {
	if list, plain := plainEntries(index); plain {
		return list, nil
	}
	return t.gitEntries(ctx, index)
}

func (t tree) gitEntries(ctx context.Context, index string) ([]entry, error) {
	c := t.readCall("ls-files", "-v", "-s", "-z")
	c.env = append(c.env, "GIT_INDEX_FILE="+index)
	out, err := git(ctx, c)
	if err != nil {
		return nil, failed("read the index of "+t.at, err)
	}
	var list []entry
	for _, l := range lines(out, 0) {
		head, path, ok := strings.Cut(l, "\t")
		f := strings.Fields(head)
		if !ok || len(f) != 4 {
			return nil, conflict(team.ReasonWorktreeUnknown, "read the index of %s: git answered %q", t.at, l)
		}
		list = append(list, entry{flag: f[0], mode: f[1], sha: f[2], stage: f[3], path: path})
	}
	return list, nil
}

// revealed returns a temporary index of t, with its entries, in which
// assume-unchanged and skip-worktree marks hide no change on disk. A file that
// a sparse checkout left out stays marked: its absence is not a change.
func (r *Repo) revealed(ctx context.Context, t tree) (index string, list []entry, drop func(), err error) {
	index, drop, err = r.tempIndex(filepath.Join(t.dir, "index"))
	if err != nil {
		return "", nil, nil, err
	}
	list, err = t.entries(ctx, index)
	var assumed, skipped strings.Builder
	for _, e := range list {
		switch {
		case e.flag == strings.ToLower(e.flag) && e.flag != "?":
			assumed.WriteString(e.path + "\x00")
			if e.flag != "s" {
				continue
			}
			fallthrough
		case e.flag == "S":
			if _, err := os.Lstat(filepath.Join(t.path, filepath.FromSlash(e.path))); err == nil {
				skipped.WriteString(e.path + "\x00")
			}
		}
	}
	for opt, paths := range map[string]string{"--no-assume-unchanged": assumed.String(), "--no-skip-worktree": skipped.String()} {
		if err != nil || paths == "" {
			continue
		}
		c := t.call("update-index", opt, "-z", "--stdin")
		c.env = append(c.env, "GIT_INDEX_FILE="+index)
		c.stdin = []byte(paths)
		if _, e := git(ctx, c); e != nil {
			err = failed("read the marks in the index of "+t.at, e)
		}
	}
	if err != nil {
		drop()
		return "", nil, nil, err
	}
	return index, list, drop, nil
}

// indexTree writes the tree of an index file. An index with conflicts has no
// tree; indexTree then uses our side of each conflict.
func (r *Repo) indexTree(ctx context.Context, c call, index string, conf []string) (string, error) {
	c.args, c.conf = []string{"write-tree"}, conf
	env := c.env
	c.env = append(env[:len(env):len(env)], "GIT_INDEX_FILE="+index)
	out, err := git(ctx, c)
	if err == nil {
		return oneLine(out), nil
	}
	if exitStatus(err) < 0 {
		return "", err
	}
	c.args, c.read = []string{"ls-files", "-s", "-z"}, true
	out, lsErr := git(ctx, c)
	if lsErr != nil {
		return "", errors.Join(err, lsErr)
	}
	info, conflicts := oneSide(lines(out, 0))
	if conflicts == 0 {
		return "", err // the failure has another cause
	}
	flat, drop, err := r.tempIndex("")
	if err != nil {
		return "", err
	}
	defer drop()
	c.env, c.read = append(env[:len(env):len(env)], "GIT_INDEX_FILE="+flat), false
	c.args, c.stdin = []string{"update-index", "-z", "--index-info"}, []byte(info)
	if _, err := git(ctx, c); err != nil {
		return "", err
	}
	c.args, c.stdin = []string{"write-tree"}, nil
	out, err = git(ctx, c)
	return oneLine(out), err
}

// oneSide converts `git ls-files -s` to input of `update-index --index-info`
// with one entry per path: stage 0, else 2 (ours), 3, 1.
func oneSide(entries []string) (info string, conflicts int) {
	rank := map[string]int{"0": 4, "2": 3, "3": 2, "1": 1}
	best := map[string]int{}
	line := map[string]string{}
	var order []string
	for _, e := range entries {
		head, path, _ := strings.Cut(e, "\t")
		f := strings.Fields(head)
		if len(f) != 3 {
			continue
		}
		if f[2] != "0" {
			conflicts++
		}
		if best[path] == 0 {
			order = append(order, path)
		}
		if rank[f[2]] > best[path] {
			best[path], line[path] = rank[f[2]], f[0]+" "+f[1]+"\t"+path+"\x00"
		}
	}
	var b strings.Builder
	for _, p := range order {
		b.WriteString(line[p])
	}
	return b.String(), conflicts
}
