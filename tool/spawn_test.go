package tool

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

// TestSpawnKeepsTheSpec: the request to the supervisor has everything that a caller asks of a
// member. Fields that teamctl sets itself are not taken from a caller.
func TestSpawnKeepsTheSpec(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	dir := t.TempDir()
	in := SpawnIn{Name: "w", Count: 1, Exact: true, Role: team.RoleReviewer, MemberSpec: team.MemberSpec{
		Agent: "command", Command: []string{"make", "test"}, Backend: "pty", Layout: team.PaneWindow, Prompt: "go", AgentType: "scout",
		Model: "m", Mode: team.ModeBypass, Bypass: true, Restart: team.RestartAlways, Env: map[string]string{"A": "b"},
		WorktreeMode: dir, Fresh: true, Asks: true, Cwd: dir, // Confine and Writable are of agent llm alone
		Limits: team.Limits{MemoryBytes: 2 << 30, PIDs: 200, CPUPercent: 150}, MCP: team.ServersTeam,
		Origin: team.Origin{TMUX: "/tmp/x,1,0", TMUXPane: "%4", PlanRequired: true, ParentSession: "x", SpawnedBy: "x", Lane: "x", Approval: 7, Nth: 1},
	}}
	got, err := r.spawnIn(t.Context(), Person(), in)
	if err != nil {
		t.Fatal(err)
	}
	row, err := r.Ledger.Team(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := in.MemberSpec
	want.Origin = team.Origin{TMUX: "/tmp/x,1,0", TMUXPane: "%4", ParentSession: row.LeadSession, SpawnedBy: row.LeadSession, Lane: "teammate"}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("(-asked +request):\n%s", diff)
	}
	if got.Name != "w" || !got.Exact || got.Role != team.RoleReviewer {
		t.Errorf("%+v", got)
	}
	v := reflect.ValueOf(in.MemberSpec)
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Name != "Repo" && f.Name != "Declared" && f.Name != "Confine" && f.Name != "Writable" && v.FieldByIndex(f.Index).IsZero() { // the team has no repository
			t.Errorf("the test does not set %s", f.Name)
		}
	}
}

// TestSpawnNamesASpec: the agent of a spawn may be the id or the name of a spec; a kind comes first.
func TestSpawnNamesASpec(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	r.Env.CheckAgent = func(kind string) error {
		if kind == "scout" {
			return nil
		}
		return team.Errorf(team.CodeInvalid, "unknown agent %q", kind)
	}
	for _, c := range []struct{ agent, typ, wantAgent, wantType string }{
		{"reviewer", "", team.AgentLLM, "reviewer"},
		{"Reviewer", "", team.AgentLLM, "reviewer"},
		{"llm", "", team.AgentLLM, ""},
		{"llm", "reviewer", team.AgentLLM, "reviewer"},
		{"scout", "", "scout", ""},
		{"reviewer", "x", "reviewer", "x"},
		{"reviwer", "", "reviwer", ""},
	} {
		got, err := r.spawnIn(t.Context(), Person(), SpawnIn{Name: "w", MemberSpec: team.MemberSpec{Agent: c.agent, AgentType: c.typ}})
		if err != nil || got.Spec.Agent != c.wantAgent || got.Spec.AgentType != c.wantType {
			t.Errorf("%s, %q: %s, %q, %v", c.agent, c.typ, got.Spec.Agent, got.Spec.AgentType, err)
		}
	}
}
