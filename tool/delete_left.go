package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// Everything below a team's own directory of worktrees is deleted with the team. Not all of it
// belongs to a member: a restored state in it is a person's worktree, and a directory may belong
// to anyone.

// leftIn returns the names in the team's directory of worktrees, without empty directories.
func leftIn(l team.Layout) ([]string, error) {
	entries, err := os.ReadDir(l.Worktrees())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "look for worktrees of team %s: %w", l.Key, err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			inside, err := os.ReadDir(filepath.Join(l.Worktrees(), e.Name()))
			if err == nil && len(inside) == 0 {
				continue
			}
		}
		names = append(names, e.Name())
	}
	return names, nil
}

// unclaimed finds what belongs to no member: worktrees, which are removed like those of members,
// and the paths of everything else.
func unclaimed(ctx context.Context, l team.Layout, claimed []treesAt) (trees []treesAt, others []string, err error) {
	names, err := leftIn(l)
	if err != nil || len(names) == 0 {
		return nil, nil, err
	}
	dir, err := filepath.EvalSymlinks(l.Worktrees())
	if err != nil {
		return nil, nil, team.Errorf(team.CodeUnavailable, "look for worktrees of team %s: %w", l.Key, err)
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		ours := func(m ledger.Member) bool {
			return m.Worktree == path || m.Worktree == filepath.Join(l.Worktrees(), name)
		}
		switch {
		case slices.ContainsFunc(claimed, func(at treesAt) bool { return slices.ContainsFunc(at.members, ours) }):
			continue
		case worktree.IsAside(name): // of an interrupted removal, which the next one completes or undoes
			continue
		}
		repo, w, err := worktree.OpenWorktree(ctx, path)
		if err != nil || w.Path == repo.Root() {
			others = append(others, path)
			continue
		}
		trees = append(trees, treesAt{root: repo.Root(), stray: true, members: []ledger.Member{{Name: name, Worktree: path, Branch: w.Branch}}})
	}
	return trees, others, nil
}

// keepLeft moves directories that could not be inspected out of the team's directory, which is
// about to be deleted, and reports their new paths.
func (e *Env) keepLeft(l team.Layout) (notes []string, err error) {
	names, err := leftIn(l)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	to := filepath.Join(e.keptDir(), l.Key+"-"+team.NewUUID()[:8])
	if err := os.MkdirAll(to, 0o700); err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "keep the contents of %s: %w", l.Worktrees(), err)
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(l.Worktrees(), name), filepath.Join(to, name)); err != nil {
			return notes, team.Errorf(team.CodeUnavailable, "keep the contents of %s: %w", l.Worktrees(), err)
		}
		notes = append(notes, fmt.Sprintf("kept %s, which could not be looked into as a worktree, as %s", name, filepath.Join(to, name)))
	}
	return notes, nil
}

// keepDamaged moves unreadable bundles out of the team's directory: they may explain what became
// of an agent.
func (e *Env) keepDamaged(l team.Layout) (notes []string, err error) {
	entries, err := os.ReadDir(l.Members())
	if err != nil {
		return nil, nil // missing, or nothing that could be kept
	}
	to := filepath.Join(e.keptDir(), l.Key+"-"+team.NewUUID()[:8])
	for _, d := range entries {
		from := filepath.Join(l.Members(), d.Name())
		problems := supervisor.BundleProblems(team.Bundle(from))
		if len(problems) == 0 {
			continue
		}
		err := os.MkdirAll(to, 0o700)
		if err == nil {
			if d.IsDir() {
				_ = os.Chmod(from, 0o700) // a read-only directory cannot be moved
			}
			err = os.Rename(from, filepath.Join(to, "bundle-"+d.Name()))
		}
		if err != nil {
			return notes, team.Errorf(team.CodeUnavailable, "keep the damaged files of %s: %w", d.Name(), err)
		}
		notes = append(notes, fmt.Sprintf("kept the files of %s, which are damaged (%v), as %s", d.Name(), problems[0], filepath.Join(to, "bundle-"+d.Name())))
	}
	return notes, nil
}
