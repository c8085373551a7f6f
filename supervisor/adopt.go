package supervisor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// adoptAll adopts every generation that an earlier supervisor left. It runs before the loop, so it
// may access the members; adoptions run in parallel.
func (s *Supervisor) adoptAll(ctx context.Context) {
	ended := s.endForeign(ctx)
	defer s.restored(ctx, ended)
	found := make(map[*member]adoption, len(s.members))
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, m := range s.members {
		if !m.row.Observed.Alive() || m.row.Generation == "" {
			continue
		}
		wg.Go(func() {
			a := s.adopt(ctx, m.row)
			mu.Lock()
			found[m] = a
			mu.Unlock()
		})
	}
	wg.Wait()
	for _, m := range s.members {
		m.replaced = s.cfg.Before.Restored || ended[m.row.Name]
		s.settleAdopted(m, found[m])
	}
}

// adoption is the result of an attempt to adopt: a living generation, none (the zero value), or
// unknown.
type adoption struct {
	at     backends.Attached
	plan   Plan
	unsure error
}

// adopt attaches to the generation that the row names.
func (s *Supervisor) adopt(ctx context.Context, row ledger.Member) (a adoption) {
	backend, ok := s.cfg.Backends[row.Spec.Backend]
	if !ok {
		s.log.Error("adopt: unknown backend", "member", row.Name, "backend", row.Spec.Backend)
		return a
	}
	at, err := backend.Adopt(ctx, s.cfg.Layout.Bundle(row.Name))
	if err != nil {
		// Regardless of the backend's error, a member counts as dead only if two independent probes
		// agree.
		if alive := s.maybeAlive(row); alive != "" {
			return adoption{unsure: fmt.Errorf("%w (%s)", err, alive)}
		}
		if _, err := bundle.ReadExit(s.cfg.Layout.Bundle(row.Name), row.Generation); err != nil && !bundle.NoExit(err) {
			return adoption{unsure: err} // the record may say how it ended
		}
		s.log.Info("nothing to adopt", "member", row.Name, "why", err)
		return a
	}
	if at.Proc().Generation != row.Generation {
		// The bundle belongs to another generation than the ledger's: the newest start did not get
		// that far. Whichever this one is, it must not run beside the next.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.policy.Grace)
		defer cancel()
		if err := at.Stop(ctx, s.policy.Grace); err != nil {
			s.log.Error("end stale generation", "member", row.Name, "err", err)
		}
		at.Detach()
		return a
	}
	a.at = at
	a.plan, err = s.cfg.Launcher.Plan(ctx, PlanIn{
		Layout: s.cfg.Layout, Team: s.team, Member: row, Dir: row.Worktree, Env: s.cfg.Env, Adopt: true,
	})
	if err != nil {
		s.log.Warn("plan of adopted member", "member", row.Name, "err", err)
	}
	return a
}

// settleAdopted writes the result of an adoption: up, ended, never started, or unknown, which is
// checked again.
func (s *Supervisor) settleAdopted(m *member, a adoption) {
	switch {
	case a.unsure != nil:
		s.doubt(m, a.unsure)
	case a.at != nil:
		m.replaced = false
		m.at, m.plan, m.upSince = a.at, a.plan, bornAt(a.at)
		if m.row.Observed == team.Starting {
			started := m.at.Proc().StartedAt.UnixMilli()
			s.writeUp(m, ledger.MemberPatch{StartedAt: &started})
		}
		s.endDoubt(m)
		s.attend(m)
		s.log.Info("adopted", "member", m.row.Name, "pid", m.at.Proc().Agent.PID, "generation", m.row.Generation)
		s.watch(m)
	case m.row.Observed == team.Running || m.row.Observed == team.Starting && s.wasLaunched(m):
		e, err := bundle.ReadExit(s.cfg.Layout.Bundle(m.row.Name), m.row.Generation)
		if err != nil {
			e = backends.Exit{Generation: m.row.Generation, Code: -1, Reason: team.WhyEndedUnseen, At: time.Now()}
		}
		if m.replaced {
			e.Reason = reasonRestored
		}
		exited{m.row.SessionKey, m.row.Generation, e}.apply(s)
	case m.row.Observed == team.Starting:
		s.settleLost(m)
	}
}

// bornAt returns when the agent was started, by this process's monotonic clock; zero if unknown.
func bornAt(at backends.Attached) time.Time {
	p := at.Proc()
	if p.Shim.PID == 0 {
		return time.Time{}
	}
	age, err := proc.Age(p.Shim)
	if err != nil {
		return time.Time{}
	}
	return time.Now().Add(-age)
}

// wasLaunched reports whether the row's generation was passed to the backend.
func (s *Supervisor) wasLaunched(m *member) bool {
	_, err := bundle.ReadLaunch(s.cfg.Layout.Bundle(m.row.Name), m.row.Generation)
	return err == nil
}
