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

// A directory restored from a backup names generations whose locks and records belong to the
// directory before it. They cannot be adopted, since they write to deleted files. They are ended,
// whether or not the restored ledger knows them, and every member that the ledger lists as running
// is started again if it should be: the end of its process says nothing about the member, so its
// restart policy does not apply.

// Before is what is known about the directory's past when a supervisor starts.
type Before struct {
	Restored bool       // no supervisor has run since it was restored
	From     string     // the team's previous directory, if it was another
	Words    *LastWords // of the previous supervisor of this path; nil: none
	// Close removes the backends' resources for the team at From; may be nil.
	Close func(ctx context.Context) error
}

// reasonRestored is why an agent of the previous directory was ended.
const reasonRestored = "its team's directory was put back from a copy"

// endForeign ends the agents of the previous directory and returns the names of all members ended
// for that reason, by any process. Agents of this directory, and of one now at the old path, hold
// their run locks there and are left alone.
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

// restored records that the directory was restored, and which members were ended.
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
