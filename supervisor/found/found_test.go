package found

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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
	list, unread := Members(l, cfg)
	if len(list) != 2 || len(unread) != 0 {
		t.Fatalf("%d members: %+v; unread: %q", len(list), list, unread)
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
	if list, unread := Members(l, nil); len(list) != 0 || len(unread) != 0 {
		t.Errorf("without config.json: %+v; unread: %q", list, unread)
	}
}

// What cannot be read is said: a member that lives may be among it.
func TestUnread(t *testing.T) {
	t.Parallel()
	l := team.Home{Dir: t.TempDir()}.Team("t")
	if list, unread := Members(l, nil); len(list) != 0 || len(unread) != 0 {
		t.Errorf("without a directory: %+v; unread: %q", list, unread)
	}
	for _, what := range []string{l.Bundle("ann").Launch(), l.Bundle("bob").Token()} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(what), 0o700), os.Symlink(what, what)); err != nil {
			t.Fatal(err)
		}
	}
	if _, unread := Members(l, nil); len(unread) != 2 || !strings.HasPrefix(unread[0], "member ann: ") || !strings.HasPrefix(unread[1], "member bob: ") {
		t.Errorf("unread: %q", unread)
	}
	if err := errors.Join(os.RemoveAll(l.Members()), os.Symlink(l.Members(), l.Members())); err != nil {
		t.Fatal(err)
	}
	cfg := &team.Config{Members: []team.ConfigMember{{Name: team.LeadName}}}
	if list, unread := Members(l, cfg); len(list) != 1 || len(unread) != 1 {
		t.Errorf("%+v; unread: %q", list, unread)
	}
}
