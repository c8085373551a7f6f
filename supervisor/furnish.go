package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// SettingBootstrap is the ledger's name of the team's Bootstrap.
const SettingBootstrap = "worktree.bootstrap"

// Furnishing is what the worktrees of one repository get besides their commit.
type Furnishing struct {
	Copy     []string      `json:"copy,omitempty"`
	Link     []string      `json:"link,omitempty"`
	Setup    []string      `json:"setup,omitempty"`
	Teardown []string      `json:"teardown,omitempty"`
	Limit    time.Duration `json:"limit,omitempty"` // of each command
}

// Bootstrap is what every new worktree of the team gets besides its commit.
type Bootstrap struct {
	Furnishing
	Repos map[string]Furnishing `json:"repos,omitempty"` // what those of a further repository get instead
	// FromRepo: the commands came with the repository, so they run only while
	// Consent is the hash of them.
	FromRepo bool   `json:"fromRepo,omitempty"`
	Hash     string `json:"hash,omitempty"`
	Consent  string `json:"consent,omitempty"`
}

// setupLimit bounds a setup command that nobody set a limit for.
const setupLimit = 10 * time.Minute

// Allowed reports whether the commands may run.
func (b Bootstrap) Allowed() bool { return !b.FromRepo || b.Hash != "" && b.Consent == b.Hash }

// Of is what the worktrees of a repository get, by the name that the team has for it,
// "" for its first.
func (b Bootstrap) Of(repo string) Furnishing {
	if own, ok := b.Repos[repo]; ok && repo != "" {
		return own
	}
	return b.Furnishing
}

// Empty reports that no worktree gets anything.
func (b Bootstrap) Empty() bool {
	something := func(f Furnishing) bool { return len(f.Copy)+len(f.Link)+len(f.Setup)+len(f.Teardown) > 0 }
	return !something(b.Furnishing) && !slices.ContainsFunc(slices.Collect(maps.Values(b.Repos)), something)
}

// Commands are the setup commands of all repositories, then the teardown commands,
// each once.
func (b Bootstrap) Commands() (setup, teardown []string) {
	add := func(to []string, from []string) []string {
		for _, run := range from {
			if !slices.Contains(to, run) {
				to = append(to, run)
			}
		}
		return to
	}
	setup, teardown = add(nil, b.Setup), add(nil, b.Teardown)
	for _, name := range slices.Sorted(maps.Keys(b.Repos)) {
		setup, teardown = add(setup, b.Repos[name].Setup), add(teardown, b.Repos[name].Teardown)
	}
	return setup, teardown
}

// SetupIn is the setup of a member's worktree; commands that nobody has consented
// to are left out.
func (b Bootstrap) SetupIn(l team.Layout, m ledger.Member, env map[string]string) worktree.SetupIn {
	f, member := b.Of(m.Spec.Repo), m.Name
	in := worktree.SetupIn{Path: m.Worktree, Copy: f.Copy, Link: f.Link, Limit: f.Limit, Log: filepath.Join(string(l.Bundle(member)), "setup.log"),
		Env: []string{team.EnvTeam + "=" + l.Key, team.EnvAgentName + "=" + member}, Book: run.BookOf(l)}
	if in.Limit <= 0 {
		in.Limit = setupLimit
	}
	if b.Allowed() {
		in.Run = f.Setup
	}
	for k, v := range env {
		in.Env = append(in.Env, k+"="+v)
	}
	return in
}

// furnish gives a member's worktree its range of ports, and a new one what the team
// has set: ignored files, dependency directories, setup commands. The answer is the
// member's environment. It is bounded by the limits of the commands, not by the
// start of the member, and ends with the supervisor.
func (s *Supervisor) furnish(ctx context.Context, t ledger.TeamRow, row ledger.Member) (map[string]string, error) {
	if row.Spec.WorktreeMode != "own" {
		return row.Spec.Env, nil
	}
	root, err := s.repoPath(ctx, t, row)
	if err != nil {
		return nil, err
	}
	repo, err := worktree.OpenRepo(ctx, root)
	if err != nil {
		return nil, err
	}
	env, err := s.ports(ctx, repo, row)
	if err != nil {
		return nil, err
	}
	done, err := repo.IsSetUp(row.Worktree)
	if err != nil {
		return nil, err
	}
	var b Bootstrap
	if !done {
		if _, err := s.cfg.Ledger.Setting(ctx, SettingBootstrap, &b); err != nil {
			return nil, err
		}
		if err := s.setup(ctx, repo, b, row, env); err != nil {
			return nil, err
		}
	}
	maps.Copy(env, row.Spec.Env) // what the person set for the member wins
	return env, nil
}

// ports are the variables of a worktree's range of ports; none where all are taken.
func (s *Supervisor) ports(ctx context.Context, repo *worktree.Repo, row ledger.Member) (map[string]string, error) {
	base, err := repo.PortBase(ctx, row.Worktree)
	switch {
	case err == nil:
		return repo.Environ(row.Worktree, base), nil
	case team.IsCode(err, team.CodeLimit):
		s.log.Warn("no ports", "member", row.Name, "err", err)
		return map[string]string{}, nil
	}
	return nil, err
}

func (s *Supervisor) setup(ctx context.Context, repo *worktree.Repo, b Bootstrap, row ledger.Member, env map[string]string) error {
	in := b.SetupIn(s.cfg.Layout, row, env)
	all := setupLimit + time.Duration(len(in.Run))*in.Limit
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), all)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	out, err := repo.Setup(ctx, in)
	what := team.EventWorktreeSetup
	if err != nil {
		what = team.EventWorktreeSetupFailed
	}
	if !b.Allowed() && len(b.Of(row.Spec.Repo).Setup) > 0 {
		out.Notes = append(out.Notes, "the setup commands came with the repository and nobody has allowed them: teamctl worktree prepare --allow")
	}
	for i := range out.Ran {
		out.Ran[i].Tail = "" // it stands in the log
	}
	if out.Copied > 0 || len(out.Linked)+len(out.Ran)+len(out.Notes) > 0 || err != nil {
		data, encode := json.Marshal(out)
		_, event := s.cfg.Ledger.Event(ctx, ledger.Event{What: what, ID: row.Name, Data: data})
		if e := errors.Join(encode, event); e != nil {
			s.log.Warn("setup not told", "member", row.Name, "err", e)
		}
	}
	return err
}

// checkoutPause is the least time between two events of one checkout.
const checkoutPause = time.Second

// checkoutProgress makes events of what git tells of a long checkout.
func (s *Supervisor) checkoutProgress(member string) func(worktree.Progress) {
	var last time.Time
	return func(p worktree.Progress) {
		if now := time.Now(); p.Percent == 100 || now.Sub(last) >= checkoutPause {
			last = now
			ctx, cancel := s.write()
			defer cancel()
			data, err := json.Marshal(p)
			if err == nil {
				_, err = s.cfg.Ledger.Event(ctx, ledger.Event{What: team.EventWorktreeCheckout, ID: member, Data: data})
			}
			if err != nil {
				s.log.Warn("checkout not told", "member", member, "err", err)
			}
		}
	}
}
