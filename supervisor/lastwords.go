package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/team"
)

// LastWords is the record of a supervisor that has lost its team's directory. It is in the runtime
// directory of the team's path, which outlives the team.
type LastWords struct {
	At    time.Time `json:"at"`
	PID   int       `json:"pid"`
	Team  string    `json:"team"`
	Dir   string    `json:"dir"`
	Why   string    `json:"why"`             // "removed" or "moved"
	Ended []Agent   `json:"ended,omitempty"` // agents that it has ended
	Left  []Agent   `json:"left,omitempty"`  // agents that are still running
}

// Agent is a generation of a member.
type Agent struct {
	Name       string `json:"name"`
	Generation string `json:"generation"`
	PID        int    `json:"pid,omitempty"`
}

// Write stores the record for the next supervisor and for the doctor.
func (w LastWords) Write(l team.Layout) error {
	data, err := json.MarshalIndent(w, "", "  ")
	if err != nil {
		return fmt.Errorf("encode last words: %w", err)
	}
	return atomicfile.Write(l.LastWords(), append(data, '\n'), 0o600, false)
}

// ReadLastWords reads a record; nil if there is no readable one.
func ReadLastWords(path string) (*LastWords, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read last words: %w", err)
	}
	w := new(LastWords)
	if json.Unmarshal(data, w) != nil { // incomplete: nothing depends on it
		return nil, nil
	}
	return w, nil
}

// living returns the members with a process, by name.
func (s *Supervisor) living(ctx context.Context) ([]Agent, []backends.Attached) {
	type both struct {
		agent Agent
		at    backends.Attached
	}
	list, _ := ask(ctx, s, func(reply func([]both, error)) {
		var out []both
		for _, m := range s.members {
			if m.at != nil {
				out = append(out, both{Agent{m.row.Name, m.row.Generation, m.at.Proc().Agent.PID}, m.at})
			}
		}
		slices.SortFunc(out, func(a, b both) int { return strings.Compare(a.agent.Name, b.agent.Name) })
		reply(out, nil)
	})
	var agents []Agent
	var at []backends.Attached
	for _, b := range list {
		select {
		case <-b.at.Exited():
			continue
		default:
		}
		agents, at = append(agents, b.agent), append(at, b.at)
	}
	return agents, at
}

// Living returns the members with a process.
func (s *Supervisor) Living(ctx context.Context) []Agent {
	agents, _ := s.living(ctx)
	return agents
}

// EndAll ends every member without recording it, since the ledger is gone. left are those that it
// could not end.
func (s *Supervisor) EndAll(ctx context.Context) (ended, left []Agent) {
	agents, at := s.living(ctx)
	errs := make([]error, len(at))
	var wg sync.WaitGroup
	for i := range at {
		wg.Go(func() {
			if errs[i] = at[i].Stop(ctx, s.policy.Grace); errs[i] == nil {
				errs[i] = at[i].Dispose(ctx)
			}
		})
	}
	wg.Wait()
	for i, a := range agents {
		if errs[i] != nil {
			s.log.Error("end member", "member", a.Name, "err", errs[i])
			left = append(left, a)
		} else {
			ended = append(ended, a)
		}
	}
	for _, b := range s.cfg.Backends {
		if err := b.CloseTeam(ctx); err != nil {
			s.log.Warn("close", "backend", b.Name(), "err", err)
		}
	}
	return ended, left
}
