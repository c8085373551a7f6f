package supervisor

import (
	"context"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestSpawnNobodyWaitsFor: a spawn whose asker has gone is known to the supervisor, which
// brings the member up.
func TestSpawnNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = s.Spawn(gone, team.SpawnRequest{Name: "a", Spec: team.MemberSpec{
		Agent: "command", Command: []string{"agent"}, Restart: team.RestartNever, WorktreeMode: "none", Cwd: r.layout.Dir,
	}})
	r.waitState("a", team.Running)
	if _, err := s.StartMembers(t.Context(), []string{"a"}); err != nil {
		t.Errorf("start: %v", err)
	}
}
