package main

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestAnswerToAnotherText checks that an answer is refused if the request has changed since it
// was shown.
func TestAnswerToAnotherText(t *testing.T) {
	r := newFaultRig(t)
	r.asks("ann", `permission Bash --input '{"command":"make"}'`)
	env := &tool.Env{Home: r.layout.Home}
	opened, err := env.Open(t.Context(), r.layout.Key)
	if err != nil {
		t.Fatal(err)
	}
	s := &screenTeam{team: opened, env: env, key: r.layout.Key}
	defer s.close()
	request, err := s.Request(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	other := request
	other.Command += " install"
	for _, seen := range []string{"", "part of " + request.Seen(), other.Seen()} {
		for _, action := range []string{"approve", "approve-always", "reject"} {
			_, err := s.Do(t.Context(), view.Deed{Action: action, Approval: 1, Member: "ann", Seen: seen})
			if !team.IsCode(err, team.CodeConflict) || !strings.Contains(err.Error(), "has changed since it was shown") {
				t.Errorf("%s of %q: %v", action, seen, err)
			}
		}
	}
	if x := r.approval(1); x.State != ledger.ApprovalPending {
		t.Errorf("it is %s", x.State)
	}
}
