package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// The commit of a snapshot holds what git would commit of each file. Where
// attributes convert a file (line endings, keywords, encodings), its bytes on
// disk may differ, and one blob may correspond to several forms on disk: a file
// that was added with LF although its attribute asks for CRLF is unchanged to
// git. The commit of the index therefore gets a third parent where needed, the
// exact commit: a tree of the files whose bytes a checkout might not restore,
// and of the ignored files that are work.

// exactMark starts the message of an exact commit.
const exactMark = snapshotMark + ": exact files of "

// conversion is what attributes do to a file.
type conversion struct {
	filtered bool // a filter driver (LFS, encryption): its bytes on disk do not belong in a repository
	changes  bool // a checkout may write other bytes than were added
}

// conversions asks git for the attributes of paths; the result has the same
// order.
func (t tree) conversions(ctx context.Context, paths []string) ([]conversion, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	attrs := []string{"filter", "text", "crlf", "eol", "ident", "working-tree-encoding"}
	c := t.readCall(append([]string{"check-attr", "-z", "--stdin"}, attrs...)...)
	for _, p := range paths {
		c.stdin = append(append(c.stdin, p...), 0)
	}
	out, err := git(ctx, c)
	if err != nil {
		return nil, err
	}
	answers := lines(out, 0) // path, attribute, value
	if len(answers) != 3*len(attrs)*len(paths) {
		return nil, fmt.Errorf("git check-attr gave %d fields for %d files", len(answers), len(paths))
	}
	auto := false // core.autocrlf converts every file that no attribute excludes
	if out, err := t.read(ctx, "config", "--get", "core.autocrlf"); err == nil {
		auto = oneLine(out) != "false"
	} else if exitStatus(err) != 1 {
		return nil, err
	}
	list := make([]conversion, len(paths))
	for i := range list {
		c := &list[i]
		binary := false
		for k := range attrs {
			name, value := answers[3*(len(attrs)*i+k)+1], answers[3*(len(attrs)*i+k)+2]
			set := value != "unspecified" && value != "unset"
			switch name {
			case "filter":
				c.filtered = set
			case "text", "crlf":
				binary = binary || value == "unset"
				fallthrough
			default:
				c.changes = c.changes || set
			}
		}
		c.changes = c.changes || auto && !binary
	}
	return list, nil
}

// exactFile is a file of an exact commit.
type exactFile struct {
	path, mode, id string
}

// exact makes the exact commit of a snapshot. It holds the files in done, which
// are hashed, and others of the index whose bytes may differ from what a
// checkout writes; with in.durable also unchanged files and ignored work. The
// result is "" if none is needed.
func (r *Repo) exact(ctx context.Context, t tree, in snapshotIn, done []exactFile, conf []string) (string, error) {
	files := done
	have := map[string]bool{}
	for _, f := range done {
		have[f.path] = true
	}
	paths, err := t.convertible(ctx, in, have)
	if err != nil {
		return "", err
	}
	for _, p := range in.ignored {
		if !have[p] {
			paths = append(paths, p)
		}
	}
	more, err := t.hashed(ctx, paths, conf)
	if err != nil {
		return "", err
	}
	if files = append(files, more...); len(files) == 0 {
		return "", nil
	}
	index, drop, err := r.tempIndex("")
	if err != nil {
		return "", err
	}
	defer drop()
	var info bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&info, "%s %s\t%s\x00", f.mode, f.id, f.path)
	}
	c := t.call("update-index", "-z", "--index-info")
	c.env = append(c.env, "GIT_INDEX_FILE="+index)
	c.stdin, c.conf = info.Bytes(), conf
	if _, err := git(ctx, c); err != nil {
		return "", err
	}
	id, err := r.indexTree(ctx, t.call(), index, conf)
	if err != nil {
		return "", err
	}
	return t.commitOf(ctx, id, nil, exactMark+filepath.Base(t.at), conf)
}

// convertible returns the tracked files, other than those in have, that
// attributes convert: those changed in the index, or all with in.durable.
func (t tree) convertible(ctx context.Context, in snapshotIn, have map[string]bool) ([]string, error) {
	var paths []string
	if in.durable {
		list, err := t.entries(ctx, in.index)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			if strings.HasPrefix(e.mode, "100") && e.stage == "0" && !have[e.path] {
				paths = append(paths, e.path)
			}
		}
	} else {
		for _, c := range in.changes {
			if c.Index != "." && c.Sub == "N..." && !have[c.Path] {
				paths = append(paths, c.Path)
			}
		}
	}
	list, err := t.conversions(ctx, paths)
	if err != nil {
		return nil, err
	}
	kept := paths[:0]
	for i, p := range paths {
		if list[i].filtered || !list[i].changes {
			continue
		}
		if fi, err := os.Lstat(filepath.Join(t.path, filepath.FromSlash(p))); err == nil && fi.Mode().IsRegular() {
			kept = append(kept, p)
		}
	}
	return kept, nil
}

// hashed stores regular files and symlinks as they are on disk. It skips a file
// that no longer exists.
func (t tree) hashed(ctx context.Context, paths []string, conf []string) ([]exactFile, error) {
	var files []exactFile
	var regular []string
	for _, p := range paths {
		full := filepath.Join(t.path, filepath.FromSlash(p))
		fi, err := os.Lstat(full)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir):
		case err != nil:
			return nil, err
		case fi.Mode().IsRegular():
			regular = append(regular, p)
			files = append(files, exactFile{path: p, mode: fileMode(team.FileChange{}, fi)})
		case fi.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(full)
			if err != nil {
				return nil, err
			}
			c := t.call("hash-object", "-w", "--no-filters", "--stdin")
			c.stdin, c.conf = []byte(to), conf
			out, err := git(ctx, c)
			if err != nil {
				return nil, err
			}
			files = append(files, exactFile{path: p, mode: "120000", id: oneLine(out)})
		}
	}
	ids, err := t.hash(ctx, regular, conf)
	if err != nil {
		return nil, err
	}
	for i := range files {
		if files[i].id == "" {
			files[i].id, ids = ids[0], ids[1:]
		}
	}
	return files, nil
}

// exactOf returns the files of the exact commit behind the index commit of a
// snapshot, or none if there is no such parent.
func (t tree) exactOf(ctx context.Context, index string) ([]exactFile, error) {
	out, err := t.read(ctx, "log", "--no-walk=unsorted", "--no-show-signature", "--format=%H %s", index+"^@")
	if err != nil {
		return nil, err
	}
	for _, l := range lines(out, '\n') {
		id, subject, _ := strings.Cut(l, " ")
		if !strings.HasPrefix(subject, exactMark) {
			continue
		}
		if out, err = t.read(ctx, "ls-tree", "-r", "-z", "--full-tree", id); err != nil {
			return nil, err
		}
		var files []exactFile
		for _, e := range lines(out, 0) { // "<mode> blob <id>\t<path>"
			head, path, ok := strings.Cut(e, "\t")
			f := strings.Fields(head)
			if !ok || len(f) != 3 {
				return nil, fmt.Errorf("git ls-tree answered %q", e)
			}
			files = append(files, exactFile{path: path, mode: f[0], id: f[2]})
		}
		return files, nil
	}
	return nil, nil
}

// rewriteExact rewrites the files whose bytes differ from the recorded ones.
func (t tree) rewriteExact(ctx context.Context, files []exactFile) error {
	var there []string
	for _, f := range files {
		if err := t.unlinkParents(f.path); err != nil {
			return err
		}
		fi, err := os.Lstat(filepath.Join(t.path, filepath.FromSlash(f.path)))
		if err == nil && fi.Mode().IsRegular() {
			there = append(there, f.path)
		}
	}
	ids, err := t.hash(ctx, there, nil)
	if err != nil {
		return err
	}
	have := make(map[string]string, len(there))
	for i, p := range there {
		have[p] = ids[i]
	}
	for _, f := range files {
		if f.mode != "120000" && have[f.path] == f.id {
			continue
		}
		data, err := t.read(ctx, "cat-file", "blob", f.id)
		if err != nil {
			return err
		}
		if err := t.put(f, data); err != nil {
			return err
		}
	}
	return nil
}

// put writes one file. A file that a checkout has written keeps its mode.
func (t tree) put(f exactFile, data []byte) error {
	full := filepath.Join(t.path, filepath.FromSlash(f.path))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return noSpace(err)
	}
	fi, err := os.Lstat(full)
	if err == nil && !fi.Mode().IsRegular() || err == nil && f.mode == "120000" {
		if err := os.Remove(full); err != nil {
			return err
		}
	}
	if f.mode == "120000" {
		err = os.Symlink(string(data), full)
	} else {
		mode := fs.FileMode(0o644)
		if f.mode == "100755" {
			mode = 0o755
		}
		err = os.WriteFile(full, data, mode)
	}
	if err != nil {
		return noSpace(err)
	}
	return nil
}

// unlinkParents removes the symlink on the way to a file, if there is one: it took the place of a
// directory, and the file would be written where it points to, which may be outside of the worktree.
func (t tree) unlinkParents(path string) error {
	for i, c := range path {
		if c != '/' {
			continue
		}
		full := filepath.Join(t.path, filepath.FromSlash(path[:i]))
		switch fi, err := os.Lstat(full); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case fi.Mode()&fs.ModeSymlink != 0:
			return os.Remove(full)
		}
	}
	return nil
}
