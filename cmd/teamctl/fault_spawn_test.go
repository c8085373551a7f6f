package main

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// TestSpawnTerminatedAtRandom checks that a spawn terminated at any time leaves either no member
// or one that start brings up, and that the name can be spawned again. In every second round
// spawn has to start the supervisor first.
func TestSpawnTerminatedAtRandom(t *testing.T) {
	r := newFaultRig(t)
	r.agent("first", "never", "fakeagent", "hold") // starts the tmux server
	var within [2]time.Duration                    // duration of a spawn
	for i := range within {
		if i == 1 {
			r.kill(r.supervisor())
		}
		began := time.Now()
		r.agent(fmt.Sprintf("usual%d", i), "never", "fakeagent", "hold")
		within[i] = time.Since(began)
	}
	done := map[string]int{}
	rounds := 10
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		if round%2 == 1 {
			r.kill(r.supervisor())
		}
		name := fmt.Sprintf("m%d", round)
		spawn := []string{"spawn", name, "--worktree", "none", "--restart", "never", "--", "fakeagent", "hold"}
		after := rand.N(within[round%2])
		status, _, stderr := r.interrupt(func() { <-time.After(after) }, syscall.SIGTERM, nil, spawn...)
		at := fmt.Sprintf("round %d, told to end after %s: exit status %d, %q", round, after, status, stderr)
		if status != 0 {
			done["told in time"]++
		}
		_, err := r.try(r.exe, "start", name)
		switch code := exitCode(err); {
		case code == 0:
			done["started"]++
		case code == team.ExitStatus(team.Errorf(team.CodeNotFound, "")) && status != 0: // it was not registered
			done["spawned"]++
			r.teamctl(spawn...)
		default:
			t.Fatalf("%s: %v", at, err)
		}
		if _, ok := r.members()[name]; !ok {
			t.Fatalf("%s: it is not on the roster", at)
		}
		// A member registered after start had checked exists in addition to the second spawn.
		for name, m := range r.members() {
			if m.Observed != team.Running {
				m = r.state(name, team.Running)
			}
			if p := r.proc(name); p.Agent.PID != m.PID || !proc.Alive(p.Agent) {
				t.Errorf("%s: %s is %d in the ledger, %d in the bundle", at, name, m.PID, p.Agent.PID)
			}
		}
	}
	t.Log(done)
}
