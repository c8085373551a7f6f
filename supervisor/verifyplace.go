package supervisor

import (
	"cmp"
	"context"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// verifyPlace implements services.VerifyPlace.
type verifyPlace struct{ s *Supervisor }

// VerifyDir returns the owner's working directory: its worktree, or else its directory, by default
// the root of the team.
func (p verifyPlace) VerifyDir(ctx context.Context, t ledger.TeamRow, m ledger.Member) (string, error) {
	if dir := cmp.Or(m.Worktree, m.Spec.Cwd); dir != "" {
		return dir, nil
	}
	return p.s.trees.RepoPath(ctx, t, m)
}

// VerifyEnv returns the environment of a built-in worker in the owner's place, without the secret
// of any member: the command must not be able to act as a member.
func (p verifyPlace) VerifyEnv(ctx context.Context, t ledger.TeamRow, m ledger.Member, dir string) ([]string, error) {
	s := p.s
	extra := map[string]string{}
	if m.Spec.WorktreeMode == "own" && m.Worktree != "" {
		repo, _, err := worktree.OpenWorktree(ctx, m.Worktree)
		if err == nil {
			extra, err = s.trees.Ports(ctx, repo, m)
		}
		if err != nil {
			s.log.Warn("ports of a verification", "member", m.Name, "err", err)
			extra = map[string]string{}
		}
	}
	for k, v := range m.Spec.Env {
		extra[k] = v
	}
	m.Spec.Agent, m.Spec.Command, m.Spec.Env = team.AgentWorker, nil, extra
	if m.AgentID == "" {
		m.AgentID = team.AgentID(m.Name, s.cfg.Layout.Key)
	}
	plan, err := s.cfg.Launcher.Plan(ctx, PlanIn{Layout: s.cfg.Layout, Team: t, Member: m, Dir: dir, Env: s.cfg.Env, Adopt: true})
	return plan.Env, err
}
