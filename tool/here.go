package tool

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/worktree"
)

// here returns those of the teams with the keys to which the directory Dir belongs: the team whose
// directory, or whose member's worktree, contains it, else those that work on its repository. It
// is called only if several teams exist, and omits a team that cannot be read.
func (e *Env) here(ctx context.Context, keys []string) []string {
	dir, err := filepath.EvalSymlinks(e.Dir)
	if e.Dir == "" || err != nil {
		return nil
	}
	root := ""
	if r, err := worktree.OpenRepo(ctx, dir); err == nil {
		root = r.Root()
	}
	var near []string
	for _, key := range keys {
		places, repos, err := e.places(ctx, key)
		if err != nil {
			continue
		}
		for _, p := range places {
			if within(dir, p) {
				return []string{key}
			}
		}
		for _, r := range repos {
			if root != "" && r == root {
				near = append(near, key)
				break
			}
		}
	}
	return near
}

// TeamsOn returns the keys of the teams that work on the repository of path, and its root.
func (e *Env) TeamsOn(ctx context.Context, path string) (keys []string, root string, err error) {
	r, err := worktree.OpenRepo(ctx, path)
	if err != nil {
		return nil, "", err
	}
	all, err := e.Keys()
	if err != nil {
		return nil, "", err
	}
	for _, key := range all {
		if _, repos, err := e.places(ctx, key); err == nil && slices.Contains(repos, r.Root()) {
			keys = append(keys, key)
		}
	}
	return keys, r.Root(), nil
}

// places returns the directories that belong only to one team, its own and its members' worktrees,
// and the repositories that it works on.
func (e *Env) places(ctx context.Context, key string) (dirs, repos []string, err error) {
	t, err := e.Open(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return nil, nil, err
	}
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	more, err := trees.RepositoriesOf(ctx, t.Ledger)
	if err != nil {
		return nil, nil, err
	}
	return append([]string{t.Layout.Dir}, worktreesOf(members)...), append(slices.Collect(maps.Values(more)), row.Repo), nil
}

// worktreesOf returns the worktrees created for members. A member that works in another directory
// has none.
func worktreesOf(members []ledger.Member) []string {
	var out []string
	for _, m := range members {
		if m.Worktree != "" && m.Branch != "" {
			out = append(out, m.Worktree)
		}
	}
	return out
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	rel, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
