package trees

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// SettingBootstrap is the setting with the team's Bootstrap.
const SettingBootstrap = "worktree.bootstrap"

// setupLimit is the default limit of a setup command.
const setupLimit = 10 * time.Minute

// SetupIn returns the setup of a member's worktree, without commands that lack consent.
func SetupIn(b team.Bootstrap, l team.Layout, m ledger.Member, env map[string]string) worktree.SetupIn {
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

// Furnish assigns a range of ports to a member's worktree, and sets up a new one as configured for
// the team: ignored files, dependency directories, setup commands. It returns the member's
// environment. It is bounded by the limits of the commands, not by the start of the member, and
// ends with the supervisor.
func (s Trees) Furnish(ctx context.Context, t ledger.TeamRow, row ledger.Member) (map[string]string, error) {
	if row.Spec.WorktreeMode != "own" {
		return row.Spec.Env, nil
	}
	root, err := s.RepoPath(ctx, t, row)
	if err != nil {
		return nil, err
	}
	repo, err := worktree.OpenRepo(ctx, root)
	if err != nil {
		return nil, err
	}
	env, err := s.Ports(ctx, repo, row)
	if err != nil {
		return nil, err
	}
	done, err := repo.IsSetUp(row.Worktree)
	if err != nil {
		return nil, err
	}
	var b team.Bootstrap
	if !done {
		if _, err := s.Ledger.Setting(ctx, SettingBootstrap, &b); err != nil {
			return nil, err
		}
		if err := s.setup(ctx, repo, b, row, env); err != nil {
			return nil, err
		}
	}
	maps.Copy(env, row.Spec.Env) // the member's own variables win
	return env, nil
}

// Ports returns the variables of a worktree's range of ports; none if all are taken.
func (s Trees) Ports(ctx context.Context, repo *worktree.Repo, row ledger.Member) (map[string]string, error) {
	base, err := repo.PortBase(ctx, row.Worktree)
	switch {
	case err == nil:
		return repo.Environ(row.Worktree, base), nil
	case team.IsCode(err, team.CodeLimit):
		s.Log.Warn("no ports", "member", row.Name, "err", err)
		return map[string]string{}, nil
	}
	return nil, err
}

func (s Trees) setup(ctx context.Context, repo *worktree.Repo, b team.Bootstrap, row ledger.Member, env map[string]string) error {
	in := SetupIn(b, s.Layout, row, env)
	all := setupLimit + time.Duration(len(in.Run))*in.Limit
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), all)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	out, err := repo.Setup(ctx, in)
	what := team.EventWorktreeSetup
	if err != nil {
		what = team.EventWorktreeSetupFailed
	}
	if !b.Allowed() && len(b.Of(row.Spec.Repo).Setup) > 0 {
		out.Notes = append(out.Notes, "the setup commands came with the repository and nobody has allowed them: teamctl worktree prepare --allow")
	}
	for i := range out.Ran {
		out.Ran[i].Tail = "" // the log has it
	}
	if out.Copied > 0 || len(out.Linked)+len(out.Ran)+len(out.Notes) > 0 || err != nil {
		data, encode := json.Marshal(out)
		_, event := s.Ledger.Event(ctx, ledger.Event{What: what, ID: row.Name, Data: data})
		if e := errors.Join(encode, event); e != nil {
			s.Log.Warn("setup not told", "member", row.Name, "err", e)
		}
	}
	return err
}

// checkoutPause is the minimum time between two events of one checkout.
const checkoutPause = time.Second

// checkoutProgress writes events from git's progress of a long checkout.
func (s Trees) checkoutProgress(member string) func(worktree.Progress) {
	var last time.Time
	return func(p worktree.Progress) {
		if now := time.Now(); p.Percent == 100 || now.Sub(last) >= checkoutPause {
			last = now
			ctx, cancel := loop.Writing(s.life)
			defer cancel()
			data, err := json.Marshal(p)
			if err == nil {
				_, err = s.Ledger.Event(ctx, ledger.Event{What: team.EventWorktreeCheckout, ID: member, Data: data})
			}
			if err != nil {
				s.Log.Warn("checkout not told", "member", member, "err", err)
			}
		}
	}
}
