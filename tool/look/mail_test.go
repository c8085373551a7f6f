package look

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// newMailTeam returns a team with these members, whose processes do not run.
func newMailTeam(t *testing.T, names ...string) *tool.Team {
	t.Helper()
	env := &tool.Env{Home: team.Home{Dir: t.TempDir()}}
	if _, err := env.TeamCreate(t.Context(), tool.Person(), tool.TeamCreateIn{TeamName: "demo"}); err != nil {
		t.Fatal(err)
	}
	tm, err := env.Open(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tm.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range names {
		_, _, err := tm.Ledger.AddMember(t.Context(), ledger.Member{Name: name, Role: team.RoleExecutor, Spec: team.MemberSpec{Agent: team.AgentClaude},
			Observed: team.Exited, Desired: team.WantStopped}, true)
		if err != nil {
			t.Fatal(err)
		}
	}
	return tm
}

// TestMailInWords checks that the mail of screens has sentences for protocol messages.
func TestMailInWords(t *testing.T) {
	t.Parallel()
	tm := newMailTeam(t, "ann")
	const frame = `{"type":"task_completed","from":"ann","taskId":"2","taskSubject":"lint","timestamp":"x"}`
	for _, m := range []ledger.NewMessage{
		{From: "ann", To: team.LeadName, Kind: team.KindTaskCompleted, Text: frame, Summary: "completed task 2: lint"},
		{From: "ann", To: team.LeadName, Kind: team.KindMessage, Text: "done\nall of it"},
	} {
		if _, err := tm.Post(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	list, err := Mail(t.Context(), tm)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if x := list[0]; x.Line() != "completed task 2: lint" || strings.Contains(x.Text, "{") || x.Said == "" {
		t.Errorf("protocol: %+v", x)
	}
	if x := list[1]; x.Text != "done\nall of it" || x.Said != "" || x.Line() != "done all of it" {
		t.Errorf("a message: %+v", x)
	}
}
