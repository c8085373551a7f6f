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
		_, err := os.Lstat(list[i].Path)
		list[i].Missing = errors.Is(err, fs.ErrNotExist)
	}
	return list, nil
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
