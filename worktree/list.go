package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// Registered is one worktree that git knows.
type Registered struct {
	Path       string `json:"path"`
	Head       string `json:"head,omitempty"`   // commit; "" if unborn or bare
	Branch     string `json:"branch,omitempty"` // short name; "" if detached or bare
	Detached   bool   `json:"detached,omitempty"`
	Bare       bool   `json:"bare,omitempty"`
	Main       bool   `json:"main,omitempty"` // the user's own checkout
	Locked     bool   `json:"locked,omitempty"`
	LockReason string `json:"lockReason,omitempty"`
	Missing    bool   `json:"missing,omitempty"` // registered, but the directory does not exist
}

// List returns every registered worktree, the main one first.
func (r *Repo) List(ctx context.Context) ([]Registered, error) {
	list, err := listIn(ctx, r.root)
	if err != nil {
		return nil, failed("list the worktrees of "+r.root, err)
	}
	return list, nil
}

// heads returns what each worktree has checked out (path, commit and branch),
// from files where they show it.
func (r *Repo) heads(ctx context.Context) ([]Registered, error) {
	if list, known := r.plainHeads(); known {
		return list, nil
	}
	return r.List(ctx)
}

// plainHeads is heads without git; known is false if the files do not show all
// of them.
func (r *Repo) plainHeads() (list []Registered, known bool) {
	if r.bare {
		return nil, false
	}
	admins, err := r.admins()
	if err != nil {
		return nil, false
	}
	for _, gitdir := range append([]string{r.common}, admins...) {
		w := Registered{Path: r.root, Main: gitdir == r.common}
		if !w.Main {
			if w.Path, err = backlink(gitdir); err != nil {
				return nil, false
			}
		}
		if w.Branch, w.Head, known = headRefIn(gitdir, r.common); !known {
			return nil, false
		}
		w.Missing = isMissing(w.Path)
		list = append(list, w)
	}
	return list, true
}

func listIn(ctx context.Context, dir string) ([]Registered, error) {
	c := call{dir: dir, read: true, args: []string{"worktree", "list", "--porcelain", "-z"}}
	sep := byte(0)
	out, err := git(ctx, c)
	if exitStatus(err) == 129 { // git before 2.36 has no -z
		sep, c.args = '\n', c.args[:3]
		out, err = git(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	list := parseList(out, sep)
	for i := range list {
		list[i].Missing = isMissing(list[i].Path)
	}
	return list, nil
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// parseList parses `git worktree list --porcelain`: records of attributes that
// end with sep, separated by an empty attribute.
func parseList(out []byte, sep byte) []Registered {
	var list []Registered
	var cur *Registered
	for _, attr := range strings.Split(string(out), string(sep)) {
		key, val, _ := strings.Cut(attr, " ")
		if key == "worktree" {
			list = append(list, Registered{Path: val, Main: len(list) == 0})
			cur = &list[len(list)-1]
			continue
		}
		if cur == nil {
			continue
		}
		switch key {
		case "HEAD":
			if strings.Trim(val, "0") != "" {
				cur.Head = val
			}
		case "branch":
			cur.Branch = strings.TrimPrefix(val, "refs/heads/")
		case "detached":
			cur.Detached = true
		case "bare":
			cur.Bare = true
		case "locked":
			cur.Locked, cur.LockReason = true, val
		}
	}
	return list
}
