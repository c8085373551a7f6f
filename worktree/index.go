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
	"time"

	"github.com/teamctl/teamctl/team"
)

// tempIndex returns a copy of the index file from ("" for an empty one) that
// git may write to; drop removes it. The copy keeps the original's timestamp:
// git compares file times with it to detect a change within one clock tick.
func (r *Repo) tempIndex(from string) (path string, drop func(), err error) {
	if err := os.MkdirAll(r.own("ops"), 0o700); err != nil {
		return "", nil, noSpace(err)
	}
	f, err := os.CreateTemp(r.own(""), "index.*")
	if err != nil {
		return "", nil, noSpace(err)
	}
	path = f.Name()
	drop = func() {
		_ = os.Remove(path)
		_ = os.Remove(path + ".lock")
	}
	empty := true
	if from != "" {
		empty, err = copyInto(f, from)
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil && empty {
		err = os.Remove(path) // git treats a missing index as empty and an empty file as corrupt
	}
	if err == nil && !empty {
		var info os.FileInfo
		if info, err = os.Stat(from); err == nil {
			err = os.Chtimes(path, info.ModTime(), info.ModTime())
		}
	}
	if err != nil {
		drop()
		return "", nil, noSpace(fmt.Errorf("copy the index %s: %w", from, err))
	}
	return path, drop, nil
}

// copyInto copies a file; none reports that it does not exist. git replaces its
// index by rename, so the opened file is always a complete index.
func copyInto(f *os.File, from string) (none bool, err error) {
	src, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = src.Close() }()
	_, err = io.Copy(f, src)
	return false, err
}

// staleIndex is the age from which a temporary index is left over from a dead
// process.
const staleIndex = time.Hour

// sweepIndexes removes the temporary indexes of killed processes.
func (r *Repo) sweepIndexes() {
	entries, err := os.ReadDir(r.own(""))
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "index.") {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > staleIndex {
			_ = os.Remove(filepath.Join(r.own(""), e.Name()))
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
