package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/holder"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A directory that was put back from a backup speaks of generations whose locks and
// records are those of the directory that was there before. They cannot be adopted:
// what they write goes to files without a name. They are ended, whether the restored
// ledger knows them or not, and every member that the ledger has as running is started
// again where it is wanted: how its process ended says nothing of the member, so that its
// restart policy is not asked.

// Before is what is known of the directory's past when a supervisor starts.
type Before struct {
	Restored bool       // no supervisor has run since it was put here
	From     string     // the team's directory before, where that was another
	Words    *LastWords // of the supervisor that was here before; nil: none
	// Close removes what the backends keep for the team at From; may be nil.
	Close func(ctx context.Context) error
}

// reasonRestored is why an agent of the directory before has ended.
const reasonRestored = "its team's directory was put back from a copy"

// endForeign ends the agents of the directory that was here before and returns the names
// of all that were ended for that, by whomever. Those of this directory, and of one that
// has taken the old place, hold their run locks there and are left alone.
func (s *Supervisor) endForeign(ctx context.Context) map[string]bool {
	b := s.cfg.Before
	ended := map[string]bool{}
	if b.Words != nil {
		for _, a := range b.Words.Ended {
			ended[a.Name] = true
		}
	}
	if !b.Restored {
		return ended
	}
	at := []team.Layout{s.cfg.Layout}
	moved := b.From != "" && b.From != s.cfg.Layout.Dir
	if moved {
		at = append(at, team.LayoutAt(b.From))
	}
	foreign := map[Agent][]backends.ProcID{} // without pids
	for _, l := range at {
		list, err := proc.OfTeam(l.Home.Dir, l.Key)
		if err != nil {
			s.log.Error("look for agents of the directory before", "err", err)
		}
		for _, m := range list {
			if held, err := bundle.Running(l.Bundle(m.Agent)); err != nil || held {
				continue
			}
			a := Agent{Name: m.Agent, Generation: m.Generation}
			foreign[a] = append(foreign[a], m.ID)
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for a, ids := range foreign {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.policy.Grace)
			defer cancel()
			if err := holder.EndAll(ctx, s.cfg.Layout.Bundle(a.Name), a.Generation, ids, s.policy.Grace); err != nil {
				s.log.Error("end agent of the directory before", "member", a.Name, "err", err)
				return
			}
			s.log.Warn("ended an agent of the directory that was here before", "member", a.Name, "generation", a.Generation, "pid", ids[0].PID)
			mu.Lock()
			defer mu.Unlock()
			ended[a.Name] = true
		})
	}
	wg.Wait()
	if _, err := os.Lstat(b.From); moved && b.Close != nil && errors.Is(err, os.ErrNotExist) {
		if err := b.Close(ctx); err != nil {
			s.log.Warn("close what was kept for the directory before", "err", err)
		}
	}
	return ended
}

// restored writes down that the directory was put back, and who has ended for it.
func (s *Supervisor) restored(ctx context.Context, ended map[string]bool) {
	if !s.cfg.Before.Restored && len(ended) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(ended))
	data, err := json.Marshal(map[string]any{"ended": names, "from": s.cfg.Before.From})
	if err == nil {
		_, err = s.cfg.Ledger.Event(ctx, ledger.Event{What: team.EventTeamRestored, ID: s.cfg.Layout.Key, Data: data})
	}
	if err != nil {
		s.log.Warn("write down that the team was restored", "err", err)
	}
}
