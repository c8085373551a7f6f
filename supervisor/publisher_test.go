package supervisor

import (
	"fmt"
	"sync"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestAnswersComeAfterConfig: a caller that is told of a change finds it in config.json, however
// many changes share one write.
func TestAnswersComeAfterConfig(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	const n = 20
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			name := fmt.Sprintf("a%d", i)
			_, err := s.Spawn(t.Context(), team.SpawnRequest{Name: name, Spec: team.MemberSpec{WorktreeMode: "none", Cwd: r.layout.Dir}})
			if err != nil {
				t.Errorf("spawn %s: %v", name, err)
				return
			}
			cfg, err := team.ReadConfig(r.layout.Config())
			if err != nil || cfg.Member(team.AgentID(name, r.layout.Key)) == nil {
				t.Errorf("%s was spawned and is not in config.json: %v", name, err)
			}
		})
	}
	all.Wait()
	out, err := s.StopMembers(t.Context(), team.StopRequest{Names: []string{"a0"}, Force: true, Remove: true})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := team.ReadConfig(r.layout.Config())
	if err != nil || len(cfg.Members) != n || cfg.Member(team.AgentID("a0", r.layout.Key)) != nil {
		t.Errorf("after %+v: %d members in config.json, want %d without a0: %v", out, len(cfg.Members), n, err)
	}
}
