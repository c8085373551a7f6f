package supervisor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/shim"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// adoptAll takes over every generation that an earlier supervisor left. It runs
// before the loop, so it may touch the members; adoptions go in parallel.
func (s *Supervisor) adoptAll(ctx context.Context) {
	var wg sync.WaitGroup
	for _, m := range s.members {
		if !m.row.Observed.Alive() || m.row.Generation == "" {
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			s.adopt(ctx, m)
		}()
	}
	wg.Wait()
	for _, m := range s.members {
		s.settleAdopted(m)
	}
}

// adopt attaches to the generation that the row names.
func (s *Supervisor) adopt(ctx context.Context, m *member) {
	backend, ok := s.cfg.Backends[m.row.Spec.Backend]
	if !ok {
		s.log.Error("adopt: unknown backend", "member", m.row.Name, "backend", m.row.Spec.Backend)
		return
	}
	at, err := backend.Adopt(ctx, s.cfg.Layout.Bundle(m.row.Name))
	if err != nil {
		s.log.Info("nothing to adopt", "member", m.row.Name, "why", err)
		return
	}
	if at.Proc().Generation != m.row.Generation {
		// The bundle speaks of another generation than the ledger: the newest start
		// never came so far. Whatever this one is, it must not live beside the next.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.policy.Grace)
		defer cancel()
		if err := at.Stop(ctx, s.policy.Grace); err != nil {
			s.log.Error("end stale generation", "member", m.row.Name, "err", err)
		}
		at.Detach()
		return
	}
	m.at = at
	plan, err := s.cfg.Launcher.Plan(ctx, PlanIn{
		Layout: s.cfg.Layout, Team: s.team, Member: m.row, Dir: m.row.Worktree, Env: s.cfg.Env,
	})
	if err != nil {
		s.log.Warn("plan of adopted member", "member", m.row.Name, "err", err)
	}
	m.plan = plan
}

// settleAdopted writes what adoption has found: up, ended, or never started.
func (s *Supervisor) settleAdopted(m *member) {
	switch {
	case m.at != nil:
		if m.row.Observed == team.Starting {
			running, pid, pane := team.Running, m.at.Proc().Agent.PID, m.at.Pane().PaneID
			started := m.at.Proc().StartedAt.UnixMilli()
			_ = s.patch(m, ledger.MemberPatch{Observed: &running, PID: &pid, PaneID: &pane, StartedAt: &started})
		}
		if !m.row.Ready {
			s.awaitReady(m)
		}
		s.log.Info("adopted", "member", m.row.Name, "pid", m.at.Proc().Agent.PID, "generation", m.row.Generation)
		s.watch(m)
	case m.row.Observed == team.Running || m.row.Observed == team.Starting && s.wasLaunched(m):
		e, err := shim.ReadExit(s.cfg.Layout.Bundle(m.row.Name), m.row.Generation)
		if err != nil {
			e = backends.Exit{Generation: m.row.Generation, Code: -1, Reason: "ended while no supervisor looked", At: time.Now()}
		}
		exited{m.row.SessionKey, m.row.Generation, e}.apply(s)
	case m.row.Observed == team.Starting:
		s.settleLost(m)
	}
}

// repairTrees undoes or completes what a killed process left half done in the
// team's repositories.
func (s *Supervisor) repairTrees() {
	own := s.team.Repo
	s.step(func(ctx context.Context) message {
		more, err := RepositoriesOf(ctx, s.cfg.Ledger)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("read repositories", "err", err)
		}
		paths := slices.Collect(maps.Values(more))
		if own != "" {
			paths = append(paths, own)
		}
		for _, path := range paths {
			repo, err := worktree.OpenRepo(ctx, path)
			if err == nil {
				var notes []string
				notes, err = repo.Repair(ctx)
				for _, n := range notes {
					s.log.Info("repaired", "what", n)
				}
			}
			if err != nil && ctx.Err() == nil {
				s.log.Warn("repair worktrees", "repo", path, "err", err)
			}
		}
		return nil
	})
}

// wasLaunched reports whether the row's generation was handed to the backend.
func (s *Supervisor) wasLaunched(m *member) bool {
	_, err := shim.ReadLaunch(s.cfg.Layout.Bundle(m.row.Name), m.row.Generation)
	return err == nil
}
