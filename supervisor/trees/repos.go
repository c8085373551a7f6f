package trees

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// SettingRepos is the setting with the team's Repositories.
const SettingRepos = "worktree.repos"

// Repositories are the further repositories that members may work on: the root of each by its
// name.
type Repositories map[string]string

// Names returns the sorted names.
func (r Repositories) Names() []string { return slices.Sorted(maps.Keys(r)) }

// RepositoriesOf reads the team's setting.
func RepositoriesOf(ctx context.Context, led *ledger.Ledger) (Repositories, error) {
	r := Repositories{}
	_, err := led.Setting(ctx, SettingRepos, &r)
	return r, err
}

// RepoPath returns the root of the repository called name; "" means the team's own, which may not
// exist. Errors: not found.
func RepoPath(ctx context.Context, led *ledger.Ledger, t ledger.TeamRow, name string) (string, error) {
	if name == "" {
		return t.Repo, nil
	}
	r, err := RepositoriesOf(ctx, led)
	if err != nil {
		return "", err
	}
	if path := r[name]; path != "" {
		return path, nil
	}
	e := team.Errorf(team.CodeNotFound, "team %s has no repository called %q", t.Key, name).WithReason(team.ReasonRepositoryUnknown)
	if len(r) > 0 {
		e = e.WithHint("it has " + strings.Join(r.Names(), ", "))
	}
	return "", e
}

// RepoPath returns the root of a member's repository.
func (s Trees) RepoPath(ctx context.Context, t ledger.TeamRow, row ledger.Member) (string, error) {
	return RepoPath(ctx, s.Ledger, t, row.Spec.Repo)
}
