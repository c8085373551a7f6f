package approval

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/team"
)

// The team's rules decide a request; without rules, and where none of them speaks of it, a
// person is asked.
func TestByRules(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	decide := func(tool, command string) *ledger.Decided {
		t.Helper()
		d, err := ByRules(t.Context(), tm.Ledger, members[0], RequestOf(team.Ask{Tool: tool, Command: command}))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if d := decide("Bash", "rm x"); d != nil {
		t.Errorf("without rules: %+v", d)
	}
	rules := team.Permissions{Allow: []team.PermissionRule{{Tool: "Read"}}, Deny: []team.PermissionRule{{Tool: "Bash"}}}
	if err := tm.Ledger.Set(t.Context(), SettingPermissions, rules); err != nil {
		t.Fatal(err)
	}
	if d := decide("Bash", "rm x"); d == nil || d.Approve {
		t.Errorf("denied: %+v", d)
	}
	if d := decide("Read", ""); d == nil || !d.Approve {
		t.Errorf("allowed: %+v", d)
	}
	if d := decide("Write", ""); d != nil {
		t.Errorf("of no rule: %+v", d)
	}
}

// TestNamed checks that a request knows whether a rule of the team names its tool.
func TestNamed(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	if err := tm.Ledger.Set(t.Context(), SettingPermissions, team.Permissions{Allow: []team.PermissionRule{{Tool: "shell", Command: "ls"}, {Tool: "Write", Members: []string{"bob"}}}}); err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]bool{"Bash": true, "Write": false, "Edit": false} {
		r, err := RulesOn(t.Context(), tm.Ledger, ledger.Approval{Kind: ledger.ApprovePermission, Name: "ann", Session: members[0].SessionKey, Message: "m",
			Payload: json.RawMessage(`{"tool_name":"` + tool + `","input":{"command":"make","file_path":"x"}}`)})
		if err != nil || r.Named != want {
			t.Errorf("%s: %+v, %v", tool, r, err)
		}
	}
	if r, err := RulesOn(t.Context(), tm.Ledger, ledger.Approval{Kind: ledger.ApprovePlan}); err != nil || !r.Named || r.OK {
		t.Errorf("a plan: %+v, %v", r, err)
	}
}

// An approval is granted with what its answer says, and with nothing where it was not approved.
func TestGrantedWith(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	ask := func(request string, approve bool) ledger.Approval {
		t.Helper()
		as := tm.Ledger.As("ann")
		out, err := as.Ask(t.Context(), ledger.AskIn{Session: members[0].SessionKey, Kind: ledger.ApprovePermission, RequestID: request, Subject: "Bash"})
		if err != nil {
			t.Fatal(err)
		}
		text, err := inbox.Encode(inbox.PermissionResponse{RequestID: request, Approve: approve, UpdatedInput: json.RawMessage(`{"command":"ls"}`)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tm.Ledger.Answer(t.Context(), ledger.AnswerIn{ID: out.Approval.ID, Approve: approve, By: team.LeadName, Message: &ledger.NewMessage{
			Kind: team.KindPermissionResponse, From: team.LeadName, To: "ann", RequestID: request, Text: text,
		}}); err != nil {
			t.Fatal(err)
		}
		a, err := tm.Ledger.Approval(t.Context(), strconv.FormatInt(out.Approval.ID, 10))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	got, err := GrantedWith(t.Context(), tm.Ledger, ask("r1", true))
	if err != nil || string(got.Input) != `{"command":"ls"}` || got.Updates != nil {
		t.Errorf("approved with %s, %s: %v", got.Input, got.Updates, err)
	}
	if got, err := GrantedWith(t.Context(), tm.Ledger, ask("r2", false)); err != nil || got.Input != nil {
		t.Errorf("rejected with %s: %v", got.Input, err)
	}
}
