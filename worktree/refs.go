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

// A start of git costs more than the rest of most questions about a branch, and git
// asks the same files. What is read here is what gitrepository-layout(5) promises:
// HEAD, refs/heads and packed-refs. Anything else (a reftable, a link, a file that
// looks odd) is unknown, and then git is asked.

// packedMost is the size from which packed refs are left to git, which searches them.
const packedMost = 1 << 20

// headRef is the commit at HEAD of the main worktree, "" where its files do not say.
// git lets neither HEAD nor a branch name anything but a commit.
func (r *Repo) headRef() string {
	data, err := os.ReadFile(filepath.Join(r.common, "HEAD"))
	if err != nil {
		return ""
	}
	branch, symbolic := bytes.CutPrefix(data, []byte("ref: refs/heads/"))
	if !symbolic {
		return objectID(data)
	}
	name := string(bytes.TrimSuffix(branch, []byte("\n")))
	if checkBranch(name) != nil {
		return ""
	}
	tip, _ := r.branchRef(name)
	return tip
}

// branchRef is the commit of a branch, "" when it does not exist; known is false where
// the files do not say.
func (r *Repo) branchRef(name string) (tip string, known bool) {
	if _, err := os.Lstat(filepath.Join(r.common, "reftable")); !errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	path := filepath.Join(r.common, "refs", "heads", filepath.FromSlash(name))
	// The loose file first: git packs a ref before it removes that.
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
	return r.packedRef("refs/heads/" + name)
}

// packedRef looks a ref up in the packed refs.
func (r *Repo) packedRef(ref string) (sha string, known bool) {
	path := filepath.Join(r.common, "packed-refs")
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", true
	}
	if err != nil || info.Size() > packedMost {
		return "", false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	end := bytes.Index(data, []byte(" "+ref+"\n"))
	if end < 0 {
		return "", true
	}
	sha = objectID(data[bytes.LastIndexByte(data[:end], '\n')+1 : end])
	return sha, sha != ""
}

// objectID is the object name that data consists of, with or without a line end, or "".
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

// HasBranch reports whether there is a branch of that name.
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
	return err == nil, failed("look for the branch "+name, err)
}
