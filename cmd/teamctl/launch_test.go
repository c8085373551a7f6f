package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
)

// TestFirstContextHasTheRoster checks that the first context of an agent has its role and the
// other members with theirs. An agent without a model gets none, and the roster is not read for
// it.
func TestFirstContextHasTheRoster(t *testing.T) {
	t.Parallel()
	home := team.Home{Dir: t.TempDir()}
	l := launcher{exe: "/bin/true", home: home, log: slog.New(slog.DiscardHandler)}
	self := ledger.Member{Name: "coder", AgentID: "coder@demo", Role: team.RoleExecutor, Generation: "g",
		Spec: team.MemberSpec{Agent: "acp", AgentType: "backend", Command: []string{"/bin/true"}}}
	read := 0
	in := supervisor.PlanIn{Layout: home.Team("demo"), Member: self, Dir: t.TempDir(), Env: []string{"PATH=/bin:/usr/bin", "HOME=/"},
		Members: func(context.Context) ([]ledger.Member, error) {
			read++
			return []ledger.Member{{Name: team.LeadName, Role: team.RoleLeader}, self,
				{Name: "critic", Role: team.RoleReviewer, Spec: team.MemberSpec{AgentType: "security"}}}, nil
		}}
	p, err := l.Plan(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(p.Argv, "--briefing")
	if at < 0 {
		t.Fatalf("argv %q", p.Argv)
	}
	for _, want := range []string{`You are "coder"`, `Your role is executor ("backend").`, "\n- team-lead: leader\n", "\n- critic: reviewer (\"security\")\n"} {
		if !strings.Contains(p.Argv[at+1]+"\n", want) {
			t.Errorf("no %q in\n%s", want, p.Argv[at+1])
		}
	}
	if strings.Contains(p.Argv[at+1], "\n- coder") {
		t.Errorf("it is among its own peers:\n%s", p.Argv[at+1])
	}
	in.Member.Spec = team.MemberSpec{Agent: "command", Command: []string{"/bin/true"}}
	if _, err := l.Plan(t.Context(), in); err != nil || read != 1 {
		t.Errorf("a command: %v, the roster was read %d times", err, read)
	}
}
