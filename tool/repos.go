package tool

import (
	"context"
	"slices"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// repoTrees has a repository of the team, and the selected members with a worktree of it.
type repoTrees struct {
	Name    string // "" means the team's own
	Repo    *worktree.Repo
	Members []ledger.Member
}

// paths returns the worktrees of its members.
func (g repoTrees) paths() []string {
	out := make([]string, len(g.Members))
	for i, m := range g.Members {
		out[i] = m.Worktree
	}
	return out
}

// repo opens the named repository; "" means the team's own.
func (t *Team) repo(ctx context.Context, name string) (*worktree.Repo, error) {
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return nil, err
	}
	path, err := trees.RepoPath(ctx, t.Ledger, row, name)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return nil, noRepo(row.Key)
	}
	return worktree.OpenRepo(ctx, path)
}

// repos opens all repositories of the team, its own first; an error if it has none.
func (t *Team) repos(ctx context.Context) ([]repoTrees, error) {
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return nil, err
	}
	more, err := trees.RepositoriesOf(ctx, t.Ledger)
	if err != nil {
		return nil, err
	}
	names := more.Names()
	if row.Repo != "" {
		names = append([]string{""}, names...)
	}
	if len(names) == 0 {
		return nil, noRepo(row.Key)
	}
	out := make([]repoTrees, len(names))
	for i, n := range names {
		out[i].Name = n
		if out[i].Repo, err = t.repo(ctx, n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// treesByRepo returns the members with a worktree of their own (the named ones, or all on the
// roster, and with left all that have left one behind), by repository, in order of first
// appearance. A team without a repository is an error.
func (t *Team) treesByRepo(ctx context.Context, names []string, left bool) ([]repoTrees, error) {
	ms, err := t.treeMembers(ctx, names, left)
	if err != nil {
		return nil, err
	}
	if len(ms) == 0 {
		_, err := t.repos(ctx)
		return nil, err
	}
	var out []repoTrees
	for _, m := range ms {
		i := slices.IndexFunc(out, func(g repoTrees) bool { return g.Name == m.Spec.Repo })
		if i < 0 {
			r, err := t.repo(ctx, m.Spec.Repo)
			if err != nil {
				return nil, err
			}
			i, out = len(out), append(out, repoTrees{Name: m.Spec.Repo, Repo: r})
		}
		out[i].Members = append(out[i].Members, m)
	}
	return out, nil
}

// resolveRepos validates the further repositories of a new team: each has a unique name and
// differs from the others.
func resolveRepos(ctx context.Context, own string, in map[string]string) (trees.Repositories, error) {
	out := trees.Repositories{}
	taken := map[string]string{own: "the team's own"}
	for _, name := range trees.Repositories(in).Names() {
		if !team.IsKey(name) {
			return nil, team.Errorf(team.CodeInvalid, "%q cannot name a repository", name).
				WithHint(`use small letters, digits and '-', for example "api"`)
		}
		root, _, err := resolveRepo(ctx, in[name], "")
		if err != nil {
			return nil, err
		}
		if root == "" {
			return nil, team.Errorf(team.CodeInvalid, "the repository %s has no path", name)
		}
		if other, twice := taken[root]; twice {
			return nil, team.Errorf(team.CodeInvalid, "%s and %s are the same repository, %s", name, other, root).WithReason(team.ReasonRepositoryTwice)
		}
		taken[root], out[name] = name, root
	}
	return out, nil
}
