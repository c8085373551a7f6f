package tool

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestCompletionReachesTheLead: when any member completes a task, by any operation, the notice is
// in the lead's mailbox at once, and the lead reads it in the documented form.
func TestCompletionReachesTheLead(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	ann, completed := r.as("ann", team.RoleExecutor), team.TaskCompleted
	if _, err := r.TaskAdd(ctx, Person(), TaskAddIn{Tasks: []ledger.NewTask{{Subject: "vet"}, {Subject: "test"}, {Subject: "ship"}}}); err != nil {
		t.Fatal(err)
	}
	claim := func() {
		t.Helper()
		if task, err := r.TaskClaim(ctx, ann, ""); err != nil || task == nil {
			t.Fatal(err)
		}
	}
	claim()
	if _, err := r.TaskComplete(ctx, ann, "1", 0, ledger.Result{}); err != nil {
		t.Fatal(err)
	}
	claim()
	if _, err := r.TaskUpdate(ctx, ann, TaskUpdateIn{TaskID: "2", Status: &completed}); err != nil {
		t.Fatal(err)
	}
	bob := r.as("bob", team.RoleReviewer)
	claim()
	if task, err := r.TaskComplete(ctx, ann, "3", 0, ledger.Result{}); err != nil || task.Review == 0 {
		t.Fatalf("%+v, %v", task, err)
	}
	if n := len(r.inbox(team.LeadName)); n != 2 {
		t.Errorf("%d notices, one of the task that waits for a review", n)
	}
	list, err := r.Approvals(ctx, false)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := r.Answer(ctx, bob, AnswerIn{ID: list[0].RequestID, Approve: true}); err != nil {
		t.Fatal(err)
	}
	lead := Caller{Name: team.LeadName, Role: team.RoleLeader}
	in, err := r.consume(ctx, lead)
	if err != nil || len(in.Entries) != 3 {
		t.Fatalf("%+v, %v", in.Entries, err)
	}
	for i, want := range []string{"1: vet", "2: test", "3: ship"} {
		e := in.Entries[i]
		if f, ok := inbox.Parse(e.Text); !ok || f.Kind() != team.KindTaskCompleted || e.From != "ann" {
			t.Errorf("%+v", e)
		}
		if !strings.Contains(in.Prompt, "\nTeammate ann completed task "+want+"\n") {
			t.Errorf("the lead reads\n%s", in.Prompt)
		}
	}
}
