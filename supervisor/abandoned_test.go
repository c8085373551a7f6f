package supervisor

import (
	"context"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestSpawnNobodyWaitsFor: a supervisor starts a member even if the process that requested the
// spawn has exited.
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
