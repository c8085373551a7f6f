package tool

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// The graph of a team has five types of edges, no edge twice, none to itself and none to a missing
// member; whoever may assign tasks may change it.
func TestEdges(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	worker := r.as("worker", team.RoleExecutor)
	boss := r.as("boss", team.RoleLeader)
	judge := r.as("judge", team.RoleReviewer)
	for i, typ := range team.EdgeTypes() {
		if _, changed, err := r.EdgeAdd(ctx, []Caller{Person(), boss}[i%2], team.Edge{From: "JUDGE", Type: typ, To: "worker@demo"}); err != nil || !changed {
			t.Fatal(changed, err)
		}
	}
	if _, changed, err := r.EdgeAdd(ctx, boss, team.Edge{From: "judge", Type: team.EdgeReviews, To: "worker"}); err != nil || changed {
		t.Error("the same edge again:", changed, err)
	}
	for _, want := range []bool{true, false} {
		if _, changed, err := r.EdgeRemove(ctx, boss, team.Edge{From: "judge", Type: team.EdgeReviews, To: "worker"}); err != nil || changed != want {
			t.Error("removed:", changed, err)
		}
	}
	for _, c := range []struct {
		by     Caller
		e      team.Edge
		code   team.Code
		reason string
	}{
		{worker, team.Edge{From: "judge", Type: team.EdgeReviews, To: "worker"}, team.CodeDenied, "role"},
		{judge, team.Edge{From: "judge", Type: team.EdgeReviews, To: "worker"}, team.CodeDenied, "role"},
		{boss, team.Edge{From: "judge", Type: "likes", To: "worker"}, team.CodeInvalid, ""},
		{boss, team.Edge{From: "judge", Type: team.EdgeReviews, To: "Judge"}, team.CodeInvalid, "self_loop"},
		{boss, team.Edge{From: "judge", Type: team.EdgeReviews, To: "ghost"}, team.CodeNotFound, team.ReasonMemberNotFound},
	} {
		_, _, err := r.EdgeAdd(ctx, c.by, c.e)
		denied(t, err, c.code, c.reason)
	}
	_, _, err := r.EdgeRemove(ctx, boss, team.Edge{From: "boss", Type: team.EdgeReviews, To: "worker"})
	denied(t, err, team.CodeNotFound, "edge_not_found")
	list, err := r.Edges(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []team.Edge{{From: "judge", Type: "delegates", To: "worker"}, {From: "judge", Type: "handoff", To: "worker"},
		{From: "judge", Type: "reports_to", To: "worker"}, {From: "judge", Type: "shares_context", To: "worker"}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	// An edge grants nothing.
	denied(t, r.may(ctx, judge, OpTaskManage), team.CodeDenied, "role")
}

// A role changes at once, only members with the right may change it, and the log has it. No member
// can raise its own role.
func TestSetRole(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	worker := r.as("worker", team.RoleExecutor)
	boss := r.as("boss", team.RoleLeader)
	r.as("root", team.RoleOperator)
	for _, c := range []struct {
		by     Caller
		name   string
		role   team.Role
		code   team.Code
		reason string
	}{
		{worker, "worker", team.RoleLeader, team.CodeDenied, "role"},
		{worker, "boss", team.RoleObserver, team.CodeDenied, "role"},
		{boss, "boss", team.RoleObserver, team.CodeDenied, "own_role"},
		{boss, "worker", team.RoleOperator, team.CodeDenied, "role"},
		{boss, "root", team.RoleExecutor, team.CodeDenied, "role"},
		{Person(), team.LeadName, team.RoleObserver, team.CodeDenied, "role"},
		{Person(), "worker", "boss", team.CodeInvalid, ""},
		{Person(), "ghost", team.RoleObserver, team.CodeNotFound, team.ReasonMemberNotFound},
	} {
		_, err := r.SetRole(ctx, c.by, c.name, c.role)
		denied(t, err, c.code, c.reason)
	}
	if m, err := r.SetRole(ctx, boss, "worker", team.RoleReviewer); err != nil || m.Role != team.RoleReviewer {
		t.Fatalf("%+v, %v", m, err)
	}
	if m, err := r.SetRole(ctx, Person(), "worker", team.RoleReviewer); err != nil || m.Role != team.RoleReviewer {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := r.SetRole(ctx, Person(), "worker", team.RoleOperator); err != nil || m.Role != team.RoleOperator {
		t.Errorf("%+v, %v", m, err)
	}
	events, err := r.Ledger.Events(ctx, 0, 0, ledger.EventFilter{What: "member.role"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		got = append(got, e.Who+" "+e.ID+" "+e.Before+" "+e.After)
	}
	if diff := cmp.Diff([]string{"boss worker executor reviewer", Person().Name + " worker reviewer operator"}, got); diff != "" {
		t.Error(diff)
	}
}

// A member whose new role may not work on tasks could not end the ones that it has: they are
// released, also if an earlier change was interrupted.
func TestSetRoleFreesTasks(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	worker := r.as("worker", team.RoleExecutor)
	if _, err := r.TaskAdd(ctx, Person(), TaskAddIn{Tasks: newTasks("held", "assigned")}); err != nil {
		t.Fatal(err)
	}
	take := func() {
		t.Helper()
		if _, err := r.Ledger.Claim(ctx, ledger.ClaimIn{Owner: worker.Session, ID: "1"}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Ledger.Reassign(ctx, "2", worker.Session, team.LeadName); err != nil {
			t.Fatal(err)
		}
	}
	for _, role := range []team.Role{team.RoleReviewer, team.RoleReviewer, team.RoleObserver} {
		take()
		if _, err := r.SetRole(ctx, Person(), "worker", role); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"1", "2"} {
			if task, err := r.Ledger.Task(ctx, id); err != nil || task.Status != team.TaskPending || task.Owner != "" {
				t.Errorf("%s: task %s: %+v, %v", role, id, task, err)
			}
		}
	}
	if _, err := r.SetRole(ctx, Person(), "worker", team.RoleExecutor); err != nil {
		t.Fatal(err)
	}
	take()
	if _, err := r.SetRole(ctx, Person(), "worker", team.RoleOperator); err != nil {
		t.Fatal(err)
	}
	if task, err := r.Ledger.Task(ctx, "1"); err != nil || task.Status != team.TaskClaimed {
		t.Errorf("%+v, %v", task, err)
	}
}
