package found

import (
	"os"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Members are those of config.json, with what their bundles add. A bundle that config.json does not
// have counts only while its generation lives: it may be of a member that has left.
func TestMembers(t *testing.T) {
	t.Parallel()
	l := team.Home{Dir: t.TempDir()}.Team("t")
	for _, name := range []string{"ann", "gone"} {
		if err := os.MkdirAll(string(l.Bundle(name)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(l.Bundle("ann").Token(), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := &team.Config{Members: []team.ConfigMember{
		{Name: team.LeadName, AgentID: "team-lead@t"},
		{Name: "ann", AgentID: "ann@t", AgentType: "claude", Model: "opus", Cwd: "/src"},
	}}
	list := Members(l, cfg)
	if len(list) != 2 {
		t.Fatalf("%d members: %+v", len(list), list)
	}
	if lead := list[0]; lead.Member.Role != team.RoleLeader || lead.Lives {
		t.Errorf("lead: %+v", lead)
	}
	ann := list[1]
	if ann.Member.Name != "ann" || ann.Member.Spec.Model != "opus" || ann.Member.Spec.Cwd != "/src" || ann.Member.Role != team.RoleExecutor {
		t.Errorf("ann: %+v", ann)
	}
	if ann.Lives || ann.Member.Desired != team.WantStopped || ann.TokenHash != ledger.HashToken("secret") {
		t.Errorf("ann: lives %v, desired %s, token %q", ann.Lives, ann.Member.Desired, ann.TokenHash)
	}
	if list := Members(l, nil); len(list) != 0 {
		t.Errorf("without config.json: %+v", list)
	}
}
