package tool

import (
	"testing"

	"github.com/teamctl/teamctl/team"
)

// Setting an owner sends it a task_assignment, once for each new owner; a member that claims a task
// itself, or releases it, gets none.
func TestOwnerIsTold(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	r.as("ann", team.RoleExecutor)
	bob, lena := r.as("bob", team.RoleExecutor), r.as("lena", team.RoleLeader)
	tasks := newTasks("one")
	tasks[0].Description = "first of all"
	if _, err := r.TaskAdd(ctx, Person(), TaskAddIn{Tasks: tasks}); err != nil {
		t.Fatal(err)
	}
	give := func(c Caller, owner string) {
		t.Helper()
		task, err := r.TaskUpdate(ctx, c, TaskUpdateIn{TaskID: "1", Owner: &owner})
		if err != nil || task.OwnerName != owner || task.Status != team.TaskPending {
			t.Fatalf("%+v, %v", task, err)
		}
	}
	give(Person(), "ann")
	const told = `{"type":"task_assignment","taskId":"1","subject":"one","description":"first of all","assignedBy":"team-lead","timestamp":"TIME"}`
	if got := r.lastText("ann"); got != told {
		t.Errorf("%s", got)
	}
	give(Person(), "ann") // it is ann's
	give(Person(), "bob")
	if got := r.lastText("bob"); got != told {
		t.Errorf("%s", got)
	}
	if _, err := r.TaskClaim(ctx, bob, "1"); err != nil {
		t.Fatal(err)
	}
	give(Person(), "ann") // who works on it loses it
	give(lena, "lena")
	give(Person(), "")
	for name, role := range map[string]team.Role{"olga": team.RoleObserver, "rita": team.RoleReviewer} { // they could not claim it
		r.as(name, role)
		_, err := r.TaskUpdate(ctx, Person(), TaskUpdateIn{TaskID: "1", Owner: &name})
		denied(t, err, team.CodeDenied, "role")
	}
	for name, want := range map[string]int{"ann": 2, "bob": 1, "lena": 0, "olga": 0, "rita": 0} {
		mail := r.inbox(name)
		if len(mail) != want {
			t.Errorf("%s has %d messages, want %d: %+v", name, len(mail), want, mail)
		}
		for _, e := range mail {
			if e.Kind != string(team.KindTaskAssignment) || e.From != team.LeadName || e.Summary != "task 1: one" {
				t.Errorf("%+v", e)
			}
		}
	}
}
