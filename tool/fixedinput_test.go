package tool

import (
	"encoding/json"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Another input can be approved only if the program can use it. A refusal leaves the request
// unchanged.
func TestFixedInput(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	ask, err := json.Marshal(team.Ask{ID: "call-1", For: team.WaitPermission, Tool: "exec_command", Command: "rm -r x"})
	if err != nil {
		t.Fatal(err)
	}
	channel, err := r.Ledger.Ask(ctx, ledger.AskIn{Session: a.Session, Kind: ledger.ApprovePermission, RequestID: "call-1", Subject: "exec_command", Payload: ask})
	if err != nil {
		t.Fatal(err)
	}
	fixed, err := r.AskPermission(ctx, a, PermissionIn{ToolName: "execute", FixedInput: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{num(channel.Approval), num(fixed)} {
		_, err = r.Answer(ctx, Person(), AnswerIn{ID: id, Approve: true, UpdatedInput: json.RawMessage(`{"command":"rm -ri x"}`)})
		denied(t, err, team.CodeInvalid, "fixed_input")
		if got, err := r.Ledger.Approval(ctx, id); err != nil || got.State != ledger.ApprovalPending {
			t.Errorf("%s is %s after the refusal, %v", id, got.State, err)
		}
		if _, err := r.Answer(ctx, Person(), AnswerIn{ID: id, Approve: true}); err != nil {
			t.Errorf("approve %s as it is: %v", id, err)
		}
	}
}
