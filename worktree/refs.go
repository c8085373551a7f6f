package worktree

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Starting git costs more than most questions about a branch, and git reads the
// same files. This file reads only what gitrepository-layout(5) documents:
// HEAD, refs/heads and packed-refs. Anything else (a reftable, a link, an
// unexpected file) is unknown, and git decides.

// packedMost is the size from which packed-refs is left to git, which searches
// it.
const packedMost = 1 << 20

// headRef returns the commit at HEAD of the main worktree, or "" if its files
// do not show it. git lets neither HEAD nor a branch point to anything but a
// commit.
func (r *Repo) headRef() string {
	_, tip, _ := headRefIn(r.common, r.common)
	return tip
}

// headRef returns the branch at HEAD of a worktree ("" if it is detached) and
// its commit ("" if there is none yet); known is false if the files do not show
// them.
func (t tree) headRef() (branch, tip string, known bool) {
	return headRefIn(t.dir, t.common())
}

// common returns the common git directory.
func (t tree) common() string {
	if up := filepath.Dir(t.dir); filepath.Base(up) == "worktrees" && !t.main {
		return filepath.Dir(up)
	}
	return t.dir
}

func headRefIn(gitdir, common string) (branch, tip string, known bool) {
	data, err := os.ReadFile(filepath.Join(gitdir, "HEAD"))
	if err != nil {
		return "", "", false
	}
	if branch = headBranch(data); branch == "" {
		tip = objectID(data)
		return "", tip, tip != ""
	}
	tip, known = branchRefIn(common, branch)
	return branch, tip, known
}

// headBranch returns the branch that the contents of a HEAD name, or "".
// (The HEAD beside a reftable names one that cannot exist.)
func headBranch(head []byte) string {
	branch, symbolic := bytes.CutPrefix(head, []byte("ref: refs/heads/"))
	name := string(bytes.TrimSuffix(branch, []byte("\n")))
	if !symbolic || checkBranch(name) != nil {
		return ""
	}
	return name
}

// branchRef returns the commit of a branch, "" if it does not exist; known is
// false if the files do not show it.
func (r *Repo) branchRef(name string) (tip string, known bool) { return branchRefIn(r.common, name) }

func branchRefIn(common, name string) (tip string, known bool) {
	if _, err := os.Lstat(filepath.Join(common, "reftable")); !errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	path := filepath.Join(common, "refs", "heads", filepath.FromSlash(name))
	// Read the loose file first: git packs a ref before it removes the loose
	// file.
	switch info, err := os.Lstat(path); {
	case err == nil && info.Mode().IsRegular():
		data, err := os.ReadFile(path)
		if err != nil {
			return "", false
		}
		tip = objectID(data)
		return tip, tip != ""
	case err == nil, !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotDir):
		return "", false
	}
	return packedRef(common, "refs/heads/"+name)
}

// packedRef looks up a ref in packed-refs.
func packedRef(common, ref string) (sha string, known bool) {
	data, known := packedRefs(common)
	if !known {
		return "", false
	}
	end := bytes.Index(data, []byte(" "+ref+"\n"))
	if end < 0 {
		return "", true
	}
	sha = objectID(data[bytes.LastIndexByte(data[:end], '\n')+1 : end])
	return sha, sha != ""
}

// packedRefs returns the contents of packed-refs.
func packedRefs(common string) (data []byte, known bool) {
	path := filepath.Join(common, "packed-refs")
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true
	}
	if err != nil || info.Size() > packedMost {
		return nil, false
	}
	data, err = os.ReadFile(path)
	return data, err == nil
}

// refsBelow returns the refs of a directory such as refs/teamctl/x, with what
// they point to.
func refsBelow(common, dir string) (refs map[string]string, known bool) {
	if _, err := os.Lstat(filepath.Join(common, "reftable")); !errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	refs = map[string]string{}
	at := filepath.Join(common, filepath.FromSlash(dir))
	entries, err := os.ReadDir(at) // before packed-refs, as in branchRefIn
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".lock") {
			continue // of a git that is writing it
		}
		if !e.Type().IsRegular() {
			return nil, false
		}
		data, err := os.ReadFile(filepath.Join(at, e.Name()))
		sha := objectID(data)
		if err != nil || sha == "" {
			return nil, false
		}
		refs[dir+"/"+e.Name()] = sha
	}
	packed, known := packedRefs(common)
	for line := range bytes.Lines(packed) {
		sha, ref, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if name, below := strings.CutPrefix(ref, dir+"/"); !ok || !below || refs[ref] != "" {
			continue
		} else if !isObjectID(sha) || strings.Contains(name, "/") {
			return nil, false
		}
		refs[ref] = sha
	}
	return refs, known
}

// anyRefBelow reports whether there are refs below a directory such as
// refs/remotes.
func anyRefBelow(common, dir string) (some, known bool) {
	if _, err := os.Lstat(filepath.Join(common, "reftable")); !errors.Is(err, fs.ErrNotExist) {
		return false, false
	}
	other := false
	err := filepath.WalkDir(filepath.Join(common, filepath.FromSlash(dir)), func(p string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // packed meanwhile
		case err != nil:
			return err
		case d.IsDir() || strings.HasSuffix(p, ".lock"):
			return nil
		}
		data, err := os.ReadFile(p)
		if some = d.Type().IsRegular() && err == nil && objectID(data) != ""; some {
			return fs.SkipAll
		}
		other = true // such as a symbolic ref, which may lead nowhere
		return nil
	})
	if some || err != nil {
		return some, some
	}
	packed, known := packedRefs(common) // after the files, as in branchRefIn
	for line := range bytes.Lines(packed) {
		sha, ref, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if !isObjectID(sha) || !strings.HasPrefix(ref, dir+"/") {
			continue
		}
		if _, err := os.Lstat(filepath.Join(common, filepath.FromSlash(ref))); errors.Is(err, fs.ErrNotExist) {
			return true, true
		}
		other = true
	}
	return false, known && !other
}

// objectID returns the object name in data, with or without a newline, or "".
func objectID(data []byte) string {
	id := string(bytes.TrimSuffix(data, []byte("\n")))
	if !isObjectID(id) {
		return ""
	}
	return id
}

func isObjectID(id string) bool {
	return (len(id) == 40 || len(id) == 64) && strings.Trim(id, "0123456789abcdef") == "" && strings.Trim(id, "0") != ""
}

// HasBranch reports whether a branch exists.
func (r *Repo) HasBranch(ctx context.Context, name string) (bool, error) {
	if err := checkBranch(name); err != nil || name == "" {
		return false, err
	}
	if tip, known := r.branchRef(name); known {
		return tip != "", nil
	}
	_, err := r.read(ctx, "show-ref", "--verify", "--quiet", "refs/heads/"+name)
	if exitStatus(err) == 1 {
		return false, nil
	}
	return err == nil, failed("look up the branch "+name, err)
}
