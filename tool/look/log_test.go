package look

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestAnsweredRequest checks that the log names what an agent has asked for after it was answered,
// too, and that a request shows what the agent says its command is for, although the hook of its
// program names the command.
func TestAnsweredRequest(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	env := &tool.Env{Home: team.Home{Dir: t.TempDir()}}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := env.TeamCreate(ctx, tool.Person(), tool.TeamCreateIn{TeamName: "demo"})
	ok(err)
	tm, err := env.Open(ctx, "demo")
	ok(err)
	defer func() { ok(tm.Close()) }()
	m, _, err := tm.Ledger.AddMember(ctx, ledger.Member{SessionKey: "agent:ann", Name: "ann", Role: team.RoleExecutor,
		Spec: team.MemberSpec{Agent: team.AgentWorker}, Desired: team.WantStopped, Observed: team.Pending, Activity: team.ActivityUnknown}, true)
	ok(err)
	ann := tool.Caller{Name: m.Name, Session: m.SessionKey, Role: m.Role}
	asked, err := tm.AskPermission(ctx, ann, tool.PermissionIn{ToolName: "Bash", Description: "npm publish",
		Input: json.RawMessage(`{"command":"npm publish","description":"publish the package"}`)})
	ok(err)
	r, err := Request(ctx, tm, asked.ID)
	ok(err)
	if r.Description != "publish the package" || r.Command != "npm publish" || len(r.Fields) != 0 {
		t.Errorf("the request is for %q, runs %q and has the fields %v", r.Description, r.Command, r.Fields)
	}
	const want = "ann asks: Bash: npm publish"
	says := func() {
		t.Helper()
		s, err := Snapshot(ctx, tm)
		ok(err)
		list, err := Log(ctx, tm, "requests", false)
		ok(err)
		for what, events := range map[string][]view.Event{"snapshot": s.Events, "log": list} {
			if !slices.ContainsFunc(events, func(e view.Event) bool { return e.Text == want }) {
				t.Errorf("the %s does not say %q: %+v", what, want, events)
			}
		}
	}
	says()
	_, err = tm.Answer(ctx, tool.Person(), tool.AnswerIn{ID: ledgerID(asked.ID), Approve: true})
	ok(err)
	says()
}
