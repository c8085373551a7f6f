package tool

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

func newTasks(subjects ...string) []ledger.NewTask {
	out := make([]ledger.NewTask, len(subjects))
	for i, s := range subjects {
		out[i].Subject = s
	}
	return out
}

func (r talkRig) request(c Caller, to, task string) (Sent, error) {
	return r.Send(r.Context(), c, SendIn{Type: "task_request", Recipient: to, Content: "please", Task: task})
}

func TestDelegationPolicy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		role               team.Role
		team, member, task string
		want               string // "sent", "approval", "forbidden"
	}{
		"leader":                         {role: team.RoleLeader, want: "sent"},
		"executor":                       {role: team.RoleExecutor, want: "forbidden"},
		"reviewer":                       {role: team.RoleReviewer, want: "forbidden"},
		"operator":                       {role: team.RoleOperator, want: "sent"},
		"team auto":                      {role: team.RoleExecutor, team: "auto", want: "sent"},
		"team approval":                  {role: team.RoleExecutor, team: "approval_required", want: "approval"},
		"leader needs no approval":       {role: team.RoleLeader, team: "approval_required", want: "sent"},
		"forbidden binds a leader":       {role: team.RoleLeader, team: "forbidden", want: "forbidden"},
		"member before team":             {role: team.RoleExecutor, team: "forbidden", member: "auto", want: "sent"},
		"member alone":                   {role: team.RoleExecutor, member: "approval_required", want: "approval"},
		"task tightens":                  {role: team.RoleExecutor, team: "auto", task: "approval_required", want: "approval"},
		"task forbids":                   {role: team.RoleLeader, task: "forbidden", want: "forbidden"},
		"task does not open":             {role: team.RoleExecutor, task: "auto", want: "forbidden"},
		"task does not loosen":           {role: team.RoleExecutor, team: "approval_required", task: "auto", want: "approval"},
		"operator passes what forbids":   {role: team.RoleOperator, team: "forbidden", want: "sent"},
		"operator passes approval, seen": {role: team.RoleOperator, team: "approval_required", want: "sent"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTalkRig(t)
			c := r.as("a", tt.role)
			r.as("b", team.RoleExecutor)
			if tt.team != "" {
				r.set(SetDelegation, tt.team)
			}
			if tt.member != "" {
				r.set(SetDelegationOf+"a", tt.member)
			}
			task := newTasks("work")
			if tt.task != "" {
				task[0].Metadata = json.RawMessage(`{"delegationPolicy":"` + tt.task + `"}`)
			}
			if _, err := r.TaskAdd(t.Context(), Person(), TaskAddIn{Tasks: task}); err != nil {
				t.Fatal(err)
			}
			sent, err := r.request(c, "b", "1")
			mail := len(r.inbox("b"))
			switch tt.want {
			case "sent":
				if err != nil || sent.MessageID == "" || mail != 1 {
					t.Errorf("%+v, %v, %d in the mailbox", sent, err, mail)
				}
			case "approval":
				if err != nil || sent.Approval == 0 || sent.Success || mail != 0 {
					t.Errorf("%+v, %v, %d in the mailbox", sent, err, mail)
				}
			case "forbidden":
				denied(t, err, team.CodeDenied, team.ReasonDelegation)
				if err.Error() != "Delegation is forbidden by node configuration (delegationPolicy=forbidden)." || mail != 0 {
					t.Errorf("%v, %d in the mailbox", err, mail)
				}
			}
			if n := len(r.events("role.bypassed")); (n > 0) != (tt.role == team.RoleOperator) {
				t.Errorf("%d bypasses logged", n)
			}
		})
	}
}

// A member that works on a task is bound by the task's policy, whatever task it names, if any, and
// cannot remove the policy.
func TestDelegationOfTheTaskInHand(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	r.as("b", team.RoleExecutor)
	r.set(SetDelegation, "auto")
	tasks := newTasks("bound", "free")
	tasks[0].Metadata = json.RawMessage(`{"delegationPolicy":"forbidden","area":"x"}`)
	if _, err := r.TaskAdd(ctx, Person(), TaskAddIn{Tasks: tasks}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.request(a, "b", "2"); err != nil {
		t.Errorf("before it works on task 1: %v", err)
	}
	if _, err := r.TaskAssign(ctx, Person(), "1", "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.request(a, "b", ""); err != nil {
		t.Errorf("while task 1 is only its next: %v", err)
	}
	if _, err := r.TaskClaim(ctx, a, "1"); err != nil {
		t.Fatal(err)
	}
	for _, task := range []string{"", "1", "2"} {
		_, err := r.request(a, "b", task)
		denied(t, err, team.CodeDenied, team.ReasonDelegation)
	}
	for _, patch := range []string{`{"delegationPolicy":null}`, `{"delegationPolicy":"auto"}`} {
		_, err := r.TaskUpdate(ctx, a, TaskUpdateIn{TaskID: "1", Metadata: json.RawMessage(patch)})
		denied(t, err, team.CodeDenied, "role")
	}
	if _, err := r.TaskUpdate(ctx, a, TaskUpdateIn{TaskID: "1", Metadata: json.RawMessage(`{"area":"y"}`)}); err != nil {
		t.Error(err)
	}
	if _, err := r.TaskUpdate(ctx, Person(), TaskUpdateIn{TaskID: "1", Metadata: json.RawMessage(`{"delegationPolicy":"sometimes"}`)}); err != nil {
		t.Fatal(err)
	}
	_, err := r.request(a, "b", "")
	denied(t, err, team.CodeInvalid, "")
	if _, err := r.TaskUpdate(ctx, Person(), TaskUpdateIn{TaskID: "1", Metadata: json.RawMessage(`{"delegationPolicy":null}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.request(a, "b", ""); err != nil {
		t.Errorf("after the person has taken it away: %v", err)
	}
}

// A message that could never be posted is refused before anybody is asked to approve it.
func TestNothingPointlessIsApproved(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	r.as("b", team.RoleExecutor)
	r.set(SetDelegation, "approval_required")
	r.set(SetMaxHops, "0")
	_, err := r.request(a, "A", "")
	denied(t, err, team.CodeInvalid, team.ReasonSelfSend)
	first := r.say(Person(), "a", "pass it on")
	_, err = r.Send(ctx, a, SendIn{Type: "task_request", Recipient: "b", Forward: first.MessageID})
	denied(t, err, team.CodeLimit, team.ReasonHopLimit)
	if len(r.events("message.dropped")) != 1 {
		t.Error("the dropped message is not in the log")
	}
	if list, err := r.Approvals(ctx, true); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// An approved message is posted in the requester's name, once; a rejected one is never posted.
func TestApprovedDelegation(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	a := r.as("a", team.RoleExecutor)
	r.as("b", team.RoleExecutor)
	r.set(SetDelegation, "approval_required")
	for _, approve := range []bool{true, false} {
		sent, err := r.request(a, "b", "")
		if err != nil {
			t.Fatal(err)
		}
		in := AnswerIn{ID: strconv.FormatInt(sent.Approval, 10), Approve: approve, Feedback: "because"}
		_, err = r.Answer(t.Context(), a, in)
		denied(t, err, team.CodeDenied, team.ReasonOwnRequest)
		if _, err := r.Answer(t.Context(), Person(), in); err != nil {
			t.Fatal(err)
		}
		if again, err := r.Answer(t.Context(), Person(), in); err != nil || again.Outcome != Already+string(again.State) {
			t.Errorf("the same answer again: %q %v", again.Outcome, err)
		}
		in.Approve = !approve
		_, err = r.Answer(t.Context(), Person(), in)
		denied(t, err, team.CodeConflict, team.ReasonAlreadyResolved)
	}
	mail := r.inbox("b")
	if len(mail) != 1 || mail[0].From != "a" || mail[0].Text != "please" {
		t.Errorf("%+v", mail)
	}
	if told := r.inbox("a"); len(told) != 2 {
		t.Errorf("the asker is told %+v", told)
	}
}

func TestMembersSpawnBySetting(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	_, err := r.Spawn(ctx, a, SpawnIn{Name: "x"})
	denied(t, err, team.CodeDenied, "role")
	r.set(SetSpawnDepth, "1")
	_, err = r.Spawn(ctx, a, SpawnIn{Name: "x"})
	denied(t, err, team.CodeUnavailable, "") // the gate is open; there is no supervisor here
	for _, in := range []SpawnIn{{Name: "x", Role: "leader"}, {Name: "x", Role: "operator"}, {Name: "x", MemberSpec: team.MemberSpec{Mode: "bypassPermissions", Bypass: true}}} {
		_, err = r.Spawn(ctx, a, in)
		denied(t, err, team.CodeDenied, "role")
	}
	// One that a has spawned is two away from the lead.
	m, _, err := r.Ledger.AddMember(ctx, ledger.Member{Name: "child", Spec: team.MemberSpec{Origin: team.Origin{SpawnedBy: a.Session}}}, true)
	if err != nil {
		t.Fatal(err)
	}
	child := Caller{Name: m.Name, Session: m.SessionKey, Role: m.Role}
	_, err = r.Spawn(ctx, child, SpawnIn{Name: "x"})
	denied(t, err, team.CodeDenied, "role")
	r.set(SetDelegation, "approval_required")
	out, err := r.Spawn(ctx, a, SpawnIn{Name: "x"})
	if err != nil || len(out) != 1 || out[0].Approval == 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	r.set(SetDelegation, "forbidden")
	_, err = r.Spawn(ctx, a, SpawnIn{Name: "x"})
	denied(t, err, team.CodeDenied, team.ReasonDelegation)
}
