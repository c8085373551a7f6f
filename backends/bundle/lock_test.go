package bundle

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestLockAmongProbes checks that a start is not refused because somebody asks whether the
// member runs, and that one that runs is not started twice.
func TestLockAmongProbes(t *testing.T) {
	t.Parallel()
	b := team.Bundle(t.TempDir())
	var stop atomic.Bool
	var probes sync.WaitGroup
	defer probes.Wait()
	defer stop.Store(true)
	for range 3 {
		probes.Go(func() {
			for !stop.Load() {
				if _, err := Running(b); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 300 {
		l, err := LockRun(b)
		if err != nil {
			t.Fatalf("nothing runs: %v", err)
		}
		if _, err := LockRun(b); !team.IsCode(err, team.CodeConflict) {
			t.Fatalf("a second one: %v", err)
		}
		if runs, err := Running(b); !runs || err != nil {
			t.Fatalf("it runs: %v, %v", runs, err)
		}
		l.Unlock()
	}
}
