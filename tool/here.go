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

// here are the teams, of those with the keys, that the directory Dir belongs to: the
// team in whose directory or in whose member's worktree it is, else those that work on
// its repository. It is asked only where several teams exist, and a team that cannot be
// read is not among them.
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

// places are the directories that are a team's alone, its own and its members'
// worktrees, and the repositories that it works on.
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

// worktreesOf are the worktrees that were made for members. One that works in place
// of another directory has none of its own.
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
