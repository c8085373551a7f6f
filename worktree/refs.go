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

// branchRef returns the commit of a branch, "" if it does not exist; known is
// false if the files do not show it.
func (r *Repo) branchRef(name string) (tip string, known bool) {
	if _, err := os.Lstat(filepath.Join(r.common, "reftable")); !errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	path := filepath.Join(r.common, "refs", "heads", filepath.FromSlash(name))
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
	return r.packedRef("refs/heads/" + name)
}

// packedRef looks up a ref in packed-refs.
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
