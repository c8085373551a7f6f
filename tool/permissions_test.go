package tool

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/permit"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Rules answer at once with their name and the reason, without further notices; a request that no
// rule matches waits for a person.
func TestRulesAnswer(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	ann := r.as("ann", team.RoleExecutor)
	rules := team.Permissions{
		Deny:  []team.PermissionRule{{Tool: "shell", Command: "rm *"}},
		Allow: []team.PermissionRule{{Tool: "shell", Command: "go test *"}},
	}
	for _, c := range []Caller{ann, r.as("op", team.RoleOperator), r.as("boss", team.RoleLeader)} {
		err := r.SetPermissions(ctx, c, rules)
		denied(t, err, team.CodeDenied, team.ReasonRole)
		if want := c.Name + " may not change the permission rules"; err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	denied(t, r.SetPermissions(ctx, Person(), team.Permissions{Allow: []team.PermissionRule{{Path: "x"}}}), team.CodeInvalid, "bad_rule")
	if err := r.SetPermissions(ctx, Person(), rules); err != nil {
		t.Fatal(err)
	}
	before := len(r.inbox(team.LeadName))
	ask := func(command string) ledger.Approval {
		t.Helper()
		input, _ := json.Marshal(map[string]string{"command": command})
		a, err := r.AskPermission(ctx, ann, PermissionIn{ToolName: "Bash", Input: input})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	yes := ask("go test ./...")
	if yes.State != ledger.ApprovalApproved || yes.AnsweredBy != permit.By || yes.Feedback != "allowed: tool shell, command go test *" || yes.AnsweredAt == 0 {
		t.Errorf("%+v", yes)
	}
	if _, err := r.AwaitApproval(ctx, yes.ID, time.Minute); err != nil {
		t.Error(err)
	}
	no := ask("go test ./... && rm -rf /")
	if no.State != ledger.ApprovalRejected || no.AnsweredBy != permit.By {
		t.Errorf("%+v", no)
	}
	_, err := r.AwaitApproval(ctx, no.ID, time.Minute)
	denied(t, err, team.CodeDenied, string(ledger.ApprovalRejected))
	if after := len(r.inbox(team.LeadName)); after != before {
		t.Errorf("the lead has %d entries, had %d", after, before)
	}
	_, err = r.Answer(ctx, Person(), AnswerIn{ID: num(no), Approve: true})
	denied(t, err, team.CodeConflict, team.ReasonAlreadyResolved)
	for _, what := range []string{"approval.approved", "approval.rejected"} {
		if e := r.events(what); len(e) != 1 || e[0].Who != permit.By {
			t.Errorf("%s: %+v", what, e)
		}
	}
	if m, err := r.Ledger.Member(ctx, "ann"); err != nil || m.Activity == team.Waiting {
		t.Errorf("%v, %v", m.Activity, err)
	}
	if a := ask("go vet ./..."); a.State != ledger.ApprovalPending || len(r.inbox(team.LeadName)) != before+1 {
		t.Errorf("%+v", a)
	}
	plan := team.ModePlan
	if _, err := r.Ledger.UpdateMember(ctx, ledger.MemberPatch{SessionKey: ann.Session, Mode: &plan}); err != nil {
		t.Fatal(err)
	}
	if a := ask("go test ./..."); a.State != ledger.ApprovalPending {
		t.Errorf("in plan mode: %+v", a)
	}
}

// No rule answers a request that was written into the lead's mailbox: anybody who can write the
// file can pose as any member there.
func TestRulesDoNotAnswerMail(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	r.as("ann", team.RoleExecutor)
	if err := r.SetPermissions(ctx, Person(), team.Permissions{Allow: []team.PermissionRule{{Tool: "*"}}}); err != nil {
		t.Fatal(err)
	}
	text, err := inbox.Encode(inbox.PermissionRequest{RequestID: "perm-1", AgentID: "ann", ToolName: "Bash", Description: "x",
		Input: json.RawMessage(`{"command":"touch x"}`), Suggestions: json.RawMessage(`[]`)})
	if err != nil {
		t.Fatal(err)
	}
	box, err := r.mailer(Caller{Name: "ann"}).Box(team.LeadName)
	if err != nil {
		t.Fatal(err)
	}
	if err := box.Append(ctx, inbox.Entry{From: "ann", Text: text, Timestamp: inbox.Timestamp(time.Now())}); err != nil {
		t.Fatal(err)
	}
	list, err := r.Approvals(ctx, true)
	if err != nil || !slices.ContainsFunc(list, func(a ledger.Approval) bool { return a.RequestID == "perm-1" && a.State == ledger.ApprovalPending }) {
		t.Errorf("%+v, %v", list, err)
	}
}
