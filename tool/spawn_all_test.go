package tool

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// starter records what it is asked to spawn.
type starter struct {
	Supervisor
	mu    sync.Mutex
	calls []string
}

func (s *starter) Spawn(_ context.Context, in team.SpawnRequest) (ledger.SpawnResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case in.Hold:
		s.calls = append(s.calls, "hold "+in.Name)
	case in.Held:
		s.calls = append(s.calls, "start "+in.Name)
		if in.Name == "bad" {
			return ledger.SpawnResult{}, team.Errorf(team.CodeUnavailable, "no such program")
		}
	default:
		s.calls = append(s.calls, "spawn "+in.Name)
	}
	return ledger.SpawnResult{Member: ledger.Member{Name: in.Name}, Renamed: in.Hold}, nil
}

// A member that is started finds the whole team on the roster, including its reviewer.
func TestAllAreOnTheRosterBeforeOneStarts(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	s := &starter{}
	r.Env.Dial = func(context.Context, team.Layout, bool) (Supervisor, error) { return s, nil }
	list := []SpawnIn{{Name: "a", Count: 2}, {Name: "bad"}, {Name: "rev", Role: "reviewer"}}
	out, err := r.SpawnAll(t.Context(), Person(), list)
	if !team.IsCode(err, team.CodeUnavailable) {
		t.Errorf("%v", err)
	}
	var states []string
	for _, o := range out {
		states = append(states, o.Name+" "+o.Status)
	}
	if got := strings.Join(states, ", "); got != "a teammate_spawned, a teammate_spawned, bad failed, rev teammate_spawned" {
		t.Error(got)
	}
	if out[0].Renamed || !out[3].Renamed || len(out[0].Warnings) != 0 || len(out[3].Warnings) != 1 {
		t.Errorf("%+v", out)
	}
	slices.Sort(s.calls[4:])
	if got := strings.Join(s.calls, ", "); got != "hold a, hold a, hold bad, hold rev, start a, start a, start bad, start rev" {
		t.Error(got)
	}
	// A mistake in the last is found before the first.
	s.calls = nil
	if _, err := r.SpawnAll(t.Context(), Person(), append(list, SpawnIn{Name: "x", Count: -1})); !team.IsCode(err, team.CodeInvalid) || len(s.calls) > 0 {
		t.Errorf("%v, %v", err, s.calls)
	}
}

// renamer gives members the names in line, in turn.
type renamer struct {
	Supervisor
	mu    sync.Mutex
	names []string
}

func (s *renamer) Spawn(_ context.Context, in team.SpawnRequest) (ledger.SpawnResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.names[0]
	s.names = s.names[1:]
	return ledger.SpawnResult{Member: ledger.Member{Name: name}, Renamed: name != in.Name}, nil
}

// The error about a member that gets another name than requested names the existing members;
// further members of several are numbered without a message.
func TestTakenNameNamesTheMembers(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	r.member("builder", team.RoleExecutor)
	r.member("probe", team.RoleExecutor)
	for _, c := range []struct {
		asked string
		names []string
		want  string
	}{
		{"Builder", []string{"builder-2"}, `the name "builder" was taken; the members are builder, probe`},
		{"builder", []string{"builder-2", "builder-3"}, `the name "builder" was taken; the members are builder, probe`},
		{"new", []string{"new"}, ""},
		{"new", []string{"new-2", "new"}, ""},
	} {
		s := &renamer{names: c.names}
		r.Env.Dial = func(context.Context, team.Layout, bool) (Supervisor, error) { return s, nil }
		out, err := r.Spawn(t.Context(), Person(), SpawnIn{Name: c.asked, Count: len(c.names), MemberSpec: team.MemberSpec{WorktreeMode: "none", Cwd: "/"}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range out {
			got = append(got, o.Warnings...)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s as %v: %q; want %q", c.asked, c.names, got, c.want)
		}
	}
}
