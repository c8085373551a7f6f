package supervisor

import (
	"fmt"
	"sync"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestAnswersComeAfterConfig: whoever is told of a change finds it in config.json,
// however many changes share one writing.
func TestAnswersComeAfterConfig(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	const n = 40
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			name := fmt.Sprintf("a%d", i)
			_, err := s.Spawn(t.Context(), SpawnIn{Name: name, Spec: ledger.MemberSpec{WorktreeMode: "none", Cwd: r.layout.Dir}})
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
	out, err := s.StopMembers(t.Context(), StopIn{Names: []string{"a0"}, Force: true, Remove: true})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := team.ReadConfig(r.layout.Config())
	if err != nil || len(cfg.Members) != n || cfg.Member(team.AgentID("a0", r.layout.Key)) != nil {
		t.Errorf("after %+v: %d members in config.json, want %d without a0: %v", out, len(cfg.Members), n, err)
	}
}

// TestPublisherCoversWhatWasWanted: an answer waits for the writing that began after
// its change, and changes meanwhile are one writing.
func TestPublisherCoversWhatWasWanted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := New(Config{Layout: r.layout, Ledger: r.led})
	s.msgs = make(chan message, 10)
	var told []string
	tell := func(what string) { s.whenPublished(func() { told = append(told, what) }) }

	tell("at once")
	s.publish()
	tell("first")
	s.publish() // while the first is being written
	s.publish()
	tell("second")
	if fmt.Sprint(told) != "[at once]" {
		t.Fatalf("told %v before anything was written", told)
	}
	(<-s.msgs).apply(s)
	if fmt.Sprint(told) != "[at once first]" {
		t.Fatalf("after one writing told %v", told)
	}
	(<-s.msgs).apply(s) // the rest is over: the second begins
	(<-s.msgs).apply(s)
	if fmt.Sprint(told) != "[at once first second]" || s.pub.wanted || s.pub.writing {
		t.Fatalf("after two writings told %v, wanted %v, writing %v", told, s.pub.wanted, s.pub.writing)
	}
	s.stopTimers()
	s.work.Wait()
}
