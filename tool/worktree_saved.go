package tool

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// SavedIn selects saved states. They outlive the team: Repo names a repository whose team is
// deleted.
type SavedIn struct {
	Repo  string `json:"repo,omitempty"`  // default: the team's
	Team  string `json:"team,omitempty"`  // key; "" for every team's
	Agent string `json:"agent,omitempty"` // "" means all
	Every bool   `json:"every,omitempty"` // of every team in the repositories of Team
}

// SavedOut is a saved state with its uncommitted files.
type SavedOut struct {
	team.SavedWork
	Changes string `json:"changes,omitempty"` // output of git diff --stat
}

// RestoreSavedIn says where to restore a rescued state: in a worktree of its own, by default
// beside the team's others and on a new branch, or with Into in the worktree of a member, whose
// state is saved first.
type RestoreSavedIn struct {
	SavedIn
	Ref    string `json:"ref"`
	Path   string `json:"path,omitempty"`
	Branch string `json:"branch,omitempty"`
	Into   string `json:"into,omitempty"`
}

// RestoredOut says where the state was restored.
type RestoredOut struct {
	Ref    string   `json:"ref"`
	Path   string   `json:"path"`
	Branch string   `json:"branch,omitempty"`
	Rescue string   `json:"rescue,omitempty"` // where the previous state was saved
	Notes  []string `json:"notes,omitempty"`
}

// openRepos opens the repositories selected by in: the named one, those of its team, else the one
// of the current directory.
func (e *Env) openRepos(ctx context.Context, in SavedIn) ([]*worktree.Repo, error) {
	path := in.Repo
	if path == "" && in.Team != "" {
		t, err := e.Open(ctx, in.Team)
		if err == nil {
			groups, err := t.repos(ctx)
			_ = t.Close()
			out := make([]*worktree.Repo, len(groups))
			for i, g := range groups {
				out[i] = g.Repo
			}
			return out, err
		}
		if !team.IsCode(err, team.CodeNotFound) {
			return nil, err
		}
	}
	if path == "" {
		path = "."
	}
	r, err := worktree.OpenRepo(ctx, path)
	return []*worktree.Repo{r}, err
}

// findSaved returns the saved state named by ref, and its repository.
func findSaved(ctx context.Context, repos []*worktree.Repo, ref string) (team.SavedWork, *worktree.Repo, error) {
	var first error
	for _, r := range repos {
		s, err := r.Saved(ctx, ref)
		if err == nil {
			return s, r, nil
		}
		if first == nil {
			first = err
		}
		if !team.IsCode(err, team.CodeNotFound) {
			return s, nil, err
		}
	}
	return team.SavedWork{}, nil, first
}

// savesOf returns the saved states of a kind in several repositories, newest first.
func savesOf(ctx context.Context, repos []*worktree.Repo, kind, teamKey, agent string) ([]team.SavedWork, error) {
	var all []team.SavedWork
	for _, r := range repos {
		list, err := r.Saves(ctx, kind, teamKey, agent)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	if len(repos) > 1 {
		slices.SortStableFunc(all, func(a, b team.SavedWork) int { return b.At.Compare(a.At) })
	}
	return all, nil
}

func noRepo(key string) error {
	return team.Errorf(team.CodeInvalid, "team %q has no repository, and so no worktrees", key).
		WithReason(team.ReasonNoRepository).WithHint("teamctl create " + key + "-2 --repo . makes a team that has one, of the repository here")
}

// Rescues lists the states saved before something was removed, newest first.
func (e *Env) Rescues(ctx context.Context, in SavedIn) ([]team.SavedWork, error) {
	repos, err := e.openRepos(ctx, in)
	if err != nil {
		return nil, err
	}
	if in.Every {
		in.Team = ""
	}
	list, err := e.rescuesOf(ctx, repos, in)
	if err != nil || in.Team == "" || in.Agent != "" {
		return list, err
	}
	// States saved by a repair belong to no team.
	own, err := savesOf(ctx, repos, worktree.KindRescue, "teamctl", "")
	if in.Team == "teamctl" {
		own = nil
	}
	return append(list, own...), err
}

// rescuesOf returns the rescued states of a team or of one member, including its former names.
func (e *Env) rescuesOf(ctx context.Context, repos []*worktree.Repo, in SavedIn) ([]team.SavedWork, error) {
	if in.Team != "" && in.Agent != "" {
		t, err := e.Open(ctx, in.Team)
		if err == nil {
			defer func() { _ = t.Close() }()
			return t.savesOf(ctx, repos, worktree.KindRescue, in.Agent)
		}
		if !team.IsCode(err, team.CodeNotFound) {
			return nil, err
		}
	}
	return savesOf(ctx, repos, worktree.KindRescue, in.Team, in.Agent)
}

// SavedShow returns one saved state; patch adds the text of the changes.
func (e *Env) SavedShow(ctx context.Context, in SavedIn, ref string, patch bool) (SavedOut, error) {
	repos, err := e.openRepos(ctx, in)
	if err != nil {
		return SavedOut{}, err
	}
	s, r, err := findSaved(ctx, repos, ref)
	if err != nil {
		return SavedOut{}, err
	}
	out := SavedOut{SavedWork: s}
	out.Changes, err = r.SavedChanges(ctx, s, patch)
	return out, err
}

// RescueDrop deletes rescued states: the only irreversible operation here, so each must be named
// in full.
func (e *Env) RescueDrop(ctx context.Context, c Caller, in SavedIn, refs []string) ([]team.SavedWork, error) {
	if err := maySaved(c); err != nil {
		return nil, err
	}
	repos, err := e.openRepos(ctx, in)
	if err != nil {
		return nil, err
	}
	list, at := make([]team.SavedWork, len(refs)), make([]*worktree.Repo, len(refs))
	for i, ref := range refs { // all are checked before the first is dropped
		if list[i], at[i], err = findSaved(ctx, repos, ref); err != nil {
			return nil, err
		}
	}
	for i, s := range list {
		if err := at[i].DropSaved(ctx, s); err != nil {
			return list[:i], err
		}
	}
	return list, nil
}

// RescueRestore restores a saved state.
func (e *Env) RescueRestore(ctx context.Context, c Caller, in RestoreSavedIn) (RestoredOut, error) {
	out := RestoredOut{Ref: in.Ref}
	if err := maySaved(c); err != nil {
		return out, err
	}
	repos, err := e.openRepos(ctx, in.SavedIn)
	if err != nil {
		return out, err
	}
	s, r, err := findSaved(ctx, repos, in.Ref)
	if err != nil {
		return out, err
	}
	out.Ref = s.Ref
	if in.Into != "" {
		if in.Path != "" || in.Branch != "" {
			return out, team.Errorf(team.CodeInvalid, "a member's worktree has its path and its branch already")
		}
		t, err := e.Open(ctx, in.Team)
		if err != nil {
			return out, err
		}
		defer func() { _ = t.Close() }()
		return t.restoreInto(ctx, in.Into, s.Ref)
	}
	stamp := strings.NewReplacer(":", "", ".", "").Replace(filepath.Base(s.Ref))
	if out.Branch = in.Branch; out.Branch == "" {
		out.Branch = "rescued/" + s.Team + "-" + s.Agent + "-" + stamp
	}
	path := in.Path
	if path == "" {
		path = r.Root() + "-rescued-" + s.Agent + "-" + stamp
		if dir := e.Home.Team(s.Team).Dir; isDir(dir) {
			path = filepath.Join(e.Home.Team(s.Team).Worktrees(), "rescued-"+s.Agent+"-"+stamp)
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return out, team.Errorf(team.CodeInvalid, "resolve %q: %w", in.Path, err)
	}
	w, err := r.Restore(ctx, worktree.RestoreIn{Ref: s.Ref, Path: path, Branch: out.Branch})
	out.Path, out.Notes = w.Path, w.Notes
	return out, err
}

// maySaved is the gate of states that outlive teams: there may be no ledger in which to log a
// bypass.
func maySaved(c Caller) error {
	if granted(c, OpWorktrees) == no {
		return errRole(c, OpWorktrees)
	}
	return nil
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// Checkpoints lists the automatically saved states, newest first; of one member, or of all for "".
func (t *Team) Checkpoints(ctx context.Context, agent string) ([]team.SavedWork, error) {
	groups, err := t.repos(ctx)
	if err != nil {
		return nil, err
	}
	var repos []*worktree.Repo
	for _, g := range groups {
		repos = append(repos, g.Repo)
	}
	return t.savesOf(ctx, repos, worktree.KindCheckpoint, agent)
}

// savesOf returns the saved states of a member, including its former names; "" means all members.
func (t *Team) savesOf(ctx context.Context, repos []*worktree.Repo, kind, agent string) ([]team.SavedWork, error) {
	if agent == "" {
		return savesOf(ctx, repos, kind, t.Layout.Key, "")
	}
	names, err := t.savedNames(ctx, agent)
	if err != nil {
		return nil, err
	}
	var all []team.SavedWork
	for name, until := range names {
		list, err := savesOf(ctx, repos, kind, t.Layout.Key, name)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(list, func(s team.SavedWork) bool { return until != 0 && s.At.UnixMilli() > until })...)
	}
	slices.SortStableFunc(all, func(a, b team.SavedWork) int { return b.At.Compare(a.At) })
	return all, nil
}

// CheckpointTaken is a member's newest checkpoint.
type CheckpointTaken struct {
	Agent string `json:"agent"`
	Ref   string `json:"ref"`
	New   bool   `json:"new"` // false: nothing has changed since
}

// CheckpointTake saves the state of the worktrees of members, or of all.
func (t *Team) CheckpointTake(ctx context.Context, c Caller, names []string, why string) ([]CheckpointTaken, error) {
	if err := t.may(ctx, c, OpWorktree); err != nil {
		return nil, err
	}
	groups, err := t.treesByRepo(ctx, names, false)
	if err != nil {
		return nil, err
	}
	var out []CheckpointTaken
	for _, g := range groups {
		for _, m := range g.Members {
			ref, fresh, err := t.saver().Save(ctx, g.Repo, m, why)
			if err != nil {
				return out, err
			}
			out = append(out, CheckpointTaken{Agent: m.Name, Ref: ref, New: fresh})
		}
	}
	return out, nil
}

// CheckpointOf saves the state of the worktree of one member, which may have left the team, and
// returns the ref of its newest checkpoint.
func (t *Team) CheckpointOf(ctx context.Context, c Caller, m ledger.Member, why string) (string, error) {
	if err := t.may(ctx, c, OpWorktree); err != nil {
		return "", err
	}
	r, err := t.repo(ctx, m.Spec.Repo)
	if err != nil {
		return "", err
	}
	ref, _, err := t.saver().Save(ctx, r, m, why)
	return ref, err
}

// CheckpointRestore restores a member's worktree to a checkpoint: ref, or the last one. The current
// state is rescued first. The member must not be running.
func (t *Team) CheckpointRestore(ctx context.Context, c Caller, agent, ref string) (RestoredOut, error) {
	if err := t.may(ctx, c, OpWorktrees); err != nil {
		return RestoredOut{}, err
	}
	var list []team.SavedWork
	if ref == "" {
		var err error
		if list, err = t.Checkpoints(ctx, agent); err != nil {
			return RestoredOut{}, err
		}
		if len(list) == 0 {
			return RestoredOut{}, team.Errorf(team.CodeNotFound, "%s has no checkpoint", agent).
				WithHint("teamctl checkpoint take " + agent)
		}
	}
	groups, err := t.treesByRepo(ctx, []string{agent}, false)
	if err != nil {
		return RestoredOut{}, err
	}
	r, m := groups[0].Repo, groups[0].Members[0]
	if ref == "" {
		ref = r.LastCheckpoint(m.Worktree, list).Ref
	} else {
		s, err := r.Saved(ctx, ref)
		if err != nil {
			return RestoredOut{}, err
		}
		ref = s.Ref
	}
	return t.restoreInto(ctx, agent, ref)
}

func (t *Team) restoreInto(ctx context.Context, agent, ref string) (RestoredOut, error) {
	out := RestoredOut{Ref: ref}
	groups, err := t.treesByRepo(ctx, []string{agent}, false)
	if err != nil {
		return out, err
	}
	r, m := groups[0].Repo, groups[0].Members[0]
	if m.Observed.Alive() {
		return out, team.Errorf(team.CodeConflict, "%s is running in %s", m.Name, m.Worktree).
			WithReason(team.ReasonRunning).WithHint("teamctl stop " + m.Name)
	}
	out.Path, out.Branch = m.Worktree, m.Branch
	out.Rescue, err = r.RestoreInto(ctx, m.Worktree, ref, t.Layout.Key, m.Name)
	return out, err
}
