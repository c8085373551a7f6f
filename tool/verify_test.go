package tool

import (
	"context"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Completing a task with a verification waits for the result, through every door, and starts a
// supervisor if there is none.
func TestEveryDoorVerifies(t *testing.T) {
	t.Parallel()
	completed := team.TaskCompleted
	for name, tt := range map[string]struct {
		person bool
		door   func(r talkRig, c Caller) (TaskDone, error)
	}{
		"complete": {door: func(r talkRig, c Caller) (TaskDone, error) {
			return r.TaskComplete(r.Context(), c, "1", 1, ledger.Result{Summary: "x"})
		}},
		"update": {door: func(r talkRig, c Caller) (TaskDone, error) {
			return r.TaskUpdate(r.Context(), c, TaskUpdateIn{TaskID: "1", Status: &completed})
		}},
		"person": {person: true, door: func(r talkRig, c Caller) (TaskDone, error) {
			return r.TaskComplete(r.Context(), c, "1", 0, ledger.Result{})
		}},
		"a person's update": {person: true, door: func(r talkRig, c Caller) (TaskDone, error) {
			return r.TaskUpdate(r.Context(), c, TaskUpdateIn{TaskID: "1", Status: &completed})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTalkRig(t)
			started := 0
			r.Env.Dial = func(_ context.Context, _ team.Layout, start bool) (Supervisor, error) {
				if start {
					started++
				}
				return nil, team.Errorf(team.CodeUnavailable, "none")
			}
			ann, _ := r.memberOf("claude", "ann", team.RoleExecutor)
			made, err := r.TaskAdd(t.Context(), Person(), TaskAddIn{Tasks: []ledger.NewTask{{Subject: "x", Verify: "true"}}})
			if err != nil || made[0].VerifyBy != team.LeadName {
				t.Fatal(made, err)
			}
			if _, err := r.TaskClaim(t.Context(), ann, "1"); err != nil {
				t.Fatal(err)
			}
			c := ann
			if tt.person {
				c = Person()
			}
			task, err := tt.door(r, c)
			if err != nil || task.Status != team.TaskInProgress || task.Verification == 0 || started == 0 {
				t.Fatalf("%+v, %v, %d started", task, err, started)
			}
			before := started
			if _, _, err := r.Members(t.Context()); err == nil || started == before {
				t.Errorf("who looks brings none: %v", err)
			}
			// Only its role changes: the work is handed in.
			if _, err := r.SetRole(t.Context(), Person(), "ann", team.RoleObserver); err != nil {
				t.Fatal(err)
			}
			if again, err := r.Ledger.Task(t.Context(), "1"); err != nil || again.Verification != task.Verification {
				t.Errorf("%+v, %v", again, err)
			}
		})
	}
}

// Only a person or a leader may set or change a command that runs with the rights of the team, or
// bring it along.
func TestWhoGivesAVerify(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	with := []ledger.NewTask{{Subject: "x", Verify: "true"}}
	command, same := "false", "true"
	if _, err := r.TaskAdd(ctx, Person(), TaskAddIn{Tasks: with}); err != nil {
		t.Fatal(err)
	}
	dump, err := r.TaskExport(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range everyRole {
		c := r.as(string(role)+"-x", role)
		_, add := r.TaskAdd(ctx, c, TaskAddIn{Tasks: with})
		_, imported := r.TaskImport(ctx, c, dump, true)
		if role == team.RoleLeader {
			if add != nil || imported != nil {
				t.Errorf("%v, %v", add, imported)
			}
			continue
		}
		denied(t, add, team.CodeDenied, "role")
		denied(t, imported, team.CodeDenied, "role")
		if role == team.RoleExecutor && team.HintOf(add) == "" {
			t.Error("no hint")
		}
	}
	ann := r.as("ann", team.RoleExecutor)
	if _, err := r.TaskClaim(ctx, ann, "1"); err != nil {
		t.Fatal(err)
	}
	_, err = r.TaskUpdate(ctx, ann, TaskUpdateIn{TaskID: "1", Verify: &command})
	denied(t, err, team.CodeDenied, "role")
	none := ""
	_, err = r.TaskUpdate(ctx, ann, TaskUpdateIn{TaskID: "1", Verify: &none})
	denied(t, err, team.CodeDenied, "role")
	if _, err := r.TaskUpdate(ctx, ann, TaskUpdateIn{TaskID: "1", Verify: &same, Subject: &command}); err != nil {
		t.Errorf("nothing of it changes: %v", err)
	}
	task, err := r.TaskUpdate(ctx, Person(), TaskUpdateIn{TaskID: "1", Verify: &command})
	if err != nil || task.Verify != command || task.VerifyBy != team.LeadName {
		t.Errorf("%+v, %v", task, err)
	}
}
