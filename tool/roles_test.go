package tool

import (
	"errors"
	"testing"

	"github.com/teamctl/teamctl/team"
)

var everyRole = []team.Role{team.RoleLeader, team.RoleExecutor, team.RoleReviewer, team.RoleObserver, team.RoleOperator}

// The table for people: l e r o p mean leader, executor, reviewer, observer and operator; - no, +
// yes, s by setting, n if named, ! logged.
func TestTableOfRoles(t *testing.T) {
	t.Parallel()
	want := map[Operation]string{
		OpTeamCreate: "+----", OpTeamDelete: "+---!", OpSettings: "----!", OpSpawn: "+s--!", OpRule: "+---!", OpShutdown: "+---!", OpMode: "+---!", OpJoin: "+---!",
		OpSend: "+++-+", OpBroadcast: "+ss-+", OpDelegate: "+ss-!", OpTaskAdd: "+++-+", OpTaskWork: "++--+", OpTaskRetry: "+++-+", OpTaskVerify: "+----",
		OpTaskManage: "+---!", OpAsk: "+++++", OpPlan: "+++++", OpAnswer: "n-n-!", OpReview: "+-+-!", OpScratchpad: "+++-+", OpRun: "+---!",
		OpWorktree: "+++-+", OpWorktrees: "+---!", OpMaintenance: "----!", OpSpecs: "++--!", OpSessions: "+++-+",
	}
	mark := map[grant]string{no: "-", yes: "+", policy: "s", named: "n", bypass: "!"}
	if len(want) != len(roles()) {
		t.Errorf("%d operations are described, the table has %d", len(want), len(roles()))
	}
	r := newTalkRig(t)
	callers := map[team.Role]Caller{}
	for _, role := range everyRole {
		callers[role] = r.as(string(role)+"-x", role)
	}
	bypassed := 0
	for op, row := range roles() {
		got := ""
		for _, role := range everyRole {
			g, ok := row[role]
			if !ok {
				t.Errorf("%s: no cell for %s", op, role)
			}
			got += mark[g]
			// may allows and refuses as the table says.
			err := r.may(t.Context(), callers[role], op)
			if (err != nil) != (g == no) {
				t.Errorf("%s by %s: %v", op, role, err)
			}
			if err != nil {
				denied(t, err, team.CodeDenied, "role")
			}
			if g == bypass {
				bypassed++
			}
		}
		if got != want[op] {
			t.Errorf("%s: %s, want %s", op, got, want[op])
		}
		if err := r.may(t.Context(), Person(), op); err != nil {
			t.Errorf("%s by a person: %v", op, err)
		}
		if err := r.may(t.Context(), Caller{Name: "x", Role: "odd"}, op); err == nil {
			t.Errorf("%s by a role that is none", op)
		}
	}
	if n := len(r.events("role.bypassed")); n != bypassed || n == 0 {
		t.Errorf("%d of %d bypasses are logged", n, bypassed)
	}
	if err := r.may(t.Context(), callers[team.RoleLeader], "fly"); err == nil {
		t.Error("an operation that is not in the table was allowed")
	}
}

// The same at the operations themselves instead of the table.
func TestEveryDoorAsksTheTable(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	if _, err := r.TaskAdd(ctx, Person(), TaskAddIn{Tasks: newTasks("one")}); err != nil {
		t.Fatal(err)
	}
	send := func(c Caller, in SendIn) error {
		in.Content = "x"
		_, err := r.Send(ctx, c, in)
		return err
	}
	doors := map[string]struct {
		allowed []team.Role
		do      func(Caller) error
	}{
		"send":      {[]team.Role{team.RoleLeader, team.RoleExecutor, team.RoleReviewer, team.RoleOperator}, func(c Caller) error { return send(c, SendIn{Recipient: team.LeadName}) }},
		"broadcast": {[]team.Role{team.RoleLeader, team.RoleOperator}, func(c Caller) error { return send(c, SendIn{Type: "broadcast"}) }},
		"info-all":  {[]team.Role{team.RoleLeader, team.RoleOperator}, func(c Caller) error { return send(c, SendIn{Type: "info"}) }},
		"delegate": {[]team.Role{team.RoleLeader, team.RoleOperator}, func(c Caller) error {
			return send(c, SendIn{Type: "task_request", Recipient: team.LeadName})
		}},
		"task-add": {[]team.Role{team.RoleLeader, team.RoleExecutor, team.RoleReviewer, team.RoleOperator}, func(c Caller) error {
			_, err := r.TaskAdd(ctx, c, TaskAddIn{Tasks: newTasks("x")})
			return err
		}},
		"task-claim": {[]team.Role{team.RoleLeader, team.RoleExecutor, team.RoleOperator}, func(c Caller) error {
			_, err := r.TaskClaim(ctx, c, "")
			return err
		}},
		"scratchpad": {[]team.Role{team.RoleLeader, team.RoleExecutor, team.RoleReviewer, team.RoleOperator}, func(c Caller) error {
			_, err := r.ScratchpadMerge(ctx, c, []byte(`{"a":1}`), nil)
			return err
		}},
		"settings": {[]team.Role{team.RoleOperator}, func(c Caller) error { return r.Set(ctx, c, SetSpawnDepth, "0") }},
		"join": {[]team.Role{team.RoleLeader, team.RoleOperator}, func(c Caller) error {
			_, err := r.Join(ctx, c, JoinIn{Name: "guest"})
			return err
		}},
		// There is no supervisor here: whoever passes the gate is told that.
		"stop": {[]team.Role{team.RoleLeader, team.RoleOperator}, func(c Caller) error {
			_, err := r.Stop(ctx, c, team.StopRequest{})
			return passed(err)
		}},
		"start": {[]team.Role{team.RoleLeader, team.RoleOperator}, func(c Caller) error {
			_, err := r.Start(ctx, c, []string{c.Name})
			return passed(err)
		}},
		"spawn": {[]team.Role{team.RoleLeader, team.RoleOperator}, func(c Caller) error {
			_, err := r.Spawn(ctx, c, SpawnIn{Name: "x"})
			return passed(err)
		}},
		"delete": {[]team.Role{}, func(c Caller) error {
			if c.Role == team.RoleLeader || c.Role == team.RoleOperator {
				return team.Errorf(team.CodeDenied, "not tried: it would work").WithReason("role")
			}
			_, err := r.Env.Delete(ctx, c, "demo", DeleteIn{})
			return err
		}},
		"create": {[]team.Role{team.RoleLeader}, func(c Caller) error {
			_, err := r.Env.TeamCreate(ctx, c, TeamCreateIn{TeamName: "other"})
			if team.IsCode(err, team.CodeDenied) {
				return team.Errorf(team.CodeDenied, "%w", err).WithReason("role")
			}
			return err
		}},
	}
	for _, role := range everyRole {
		c := r.as(string(role)+"-x", role)
		for name, d := range doors {
			err := d.do(c)
			allowed := false
			for _, a := range d.allowed {
				allowed = allowed || a == role
			}
			switch {
			case allowed && err != nil:
				t.Errorf("%s by %s: %v", name, role, err)
			case !allowed && team.CodeOf(err) != team.CodeDenied:
				t.Errorf("%s by %s: %v, want denied", name, role, err)
			}
		}
	}
	if n := len(r.events("role.bypassed")); n == 0 {
		t.Error("an operator passed without a trace")
	}
}

// passed is nil for the error of a team without a supervisor.
func passed(err error) error {
	if team.IsCode(err, team.CodeUnavailable) {
		return nil
	}
	if err == nil {
		return errors.New("there is no supervisor that could do it")
	}
	return err
}
