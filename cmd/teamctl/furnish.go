package main

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/teamfile"
)

// source is the team file and what the person has consented to: its setup commands, its rules,
// members that skip permission prompts.
type source struct {
	file   string
	agreed bool // to all of its commands
	allow  bool
	hooks  bool
	bypass bool

	permissions bool // to what its rules allow

	dry, remove bool // only show the difference; also remove what the file no longer has
}

// furnish records how the team's worktrees are set up. The commands of a file in the repository
// need a person's consent before they run, since whoever clones the repository has not read them.
func (a *app) furnish(ctx context.Context, t *tool.Team, c tool.Caller, f *teamfile.File, from source, made tool.TeamCreateOut) error {
	b := team.Bootstrap{Furnishing: furnishing(f.Worktrees.Furnishing)}
	for name, w := range f.Worktrees.Repos {
		if b.Repos == nil {
			b.Repos = map[string]team.Furnishing{}
		}
		b.Repos[name] = furnishing(w)
	}
	if b.Empty() {
		return nil
	}
	if made.Repo == "" && len(made.Repos) == 0 {
		return team.Errorf(team.CodeInvalid, "worktrees need a repository").WithReason(team.ReasonNoRepository).WithHint("add repo: PATH to " + from.file)
	}
	var err error
	if b.FromRepo, err = liesIn(from.file, made); err != nil {
		return err
	}
	allowed, err := t.SetBootstrap(ctx, c, b, from.allow || from.agreed)
	if err != nil {
		return err
	}
	if !allowed {
		a.out.note("the setup commands of %s are not run, for it came with the repository:", from.file)
		setup, teardown := b.Commands()
		for _, s := range append(setup, teardown...) {
			a.out.note("  %s", printable(s))
		}
		a.out.hint("when you have read them: teamctl worktree prepare --allow --team %s", t.Layout.Key)
	}
	return nil
}

func furnishing(w teamfile.Furnishing) team.Furnishing {
	return team.Furnishing{Copy: w.Copy, Link: w.Link, Setup: w.Setup, Teardown: w.Teardown, Limit: w.Timeout}
}

// liesIn reports whether a team file is part of a repository of its team.
func liesIn(file string, made tool.TeamCreateOut) (bool, error) {
	roots := slices.Collect(maps.Values(made.Repos))
	if made.Repo != "" {
		roots = append(roots, made.Repo)
	}
	file, err := realPath(file)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(roots, func(root string) bool { return strings.HasPrefix(file, root+string(filepath.Separator)) }) {
		return true, nil
	}
	repo, err := repositoryOf(file)
	return repo != "", err
}

// realPath returns the absolute path of a file without symbolic links.
func realPath(file string) (string, error) {
	abs, err := filepath.Abs(file)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", team.Errorf(team.CodeInvalid, "resolve %s: %w", file, err)
	}
	return abs, nil
}

// absolute resolves a path from the command line; "" stays empty.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", team.Errorf(team.CodeInvalid, "resolve %q: %w", path, err)
	}
	return abs, nil
}

// besides resolves a path relative to the file that contains it; "" stays empty.
func besides(file, path string) (string, error) {
	if path == "" || filepath.IsAbs(path) {
		return path, nil
	}
	return absolute(filepath.Join(filepath.Dir(file), path))
}
