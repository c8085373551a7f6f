package tool

import (
	"testing"

	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
)

// What plan mode (p) and delegate mode (d) leave of each operation; what is in
// neither list is refused in both. Spawning and stopping are not among the tools of
// delegate mode: who delegates asks a member to end by message.
func TestTableOfModes(t *testing.T) {
	want := map[Operation]string{
		OpTeamCreate: "d", OpTeamDelete: "d", OpSend: "pd", OpBroadcast: "d", OpDelegate: "d", OpShutdown: "d",
		OpTaskAdd: "d", OpTaskRetry: "d", OpTaskManage: "d", OpAsk: "pd", OpPlan: "p", OpAnswer: "d", OpReview: "d",
	}
	for op := range roles {
		got := ""
		if ModeHas(team.ModePlan, op) {
			got += "p"
		}
		if ModeHas(team.ModeDelegate, op) {
			got += "d"
		}
		if got != want[op] {
			t.Errorf("%s: %q, want %q", op, got, want[op])
		}
		for _, m := range []team.Mode{"", team.ModeDefault, team.ModeAcceptEdits, team.ModeBypass, team.ModeDontAsk} {
			if !ModeHas(m, op) {
				t.Errorf("mode %q takes %q away", m, op)
			}
		}
	}
}

// A leader in delegate mode meets the same at the operations themselves, whichever
// door leads to them.
func TestDelegateAtTheDoors(t *testing.T) {
	r := newTalkRig(t)
	ctx := t.Context()
	r.as("bob", team.RoleExecutor)
	c := r.as("lena", team.RoleLeader)
	c.Mode = team.ModeDelegate
	one, err := r.TaskAdd(ctx, c, TaskAddIn{Tasks: newTasks("one")})
	if err != nil {
		t.Fatal(err)
	}
	bob, in := "bob", team.TaskInProgress
	if _, err := r.TaskUpdate(ctx, c, TaskUpdateIn{TaskID: one[0].ID, Owner: &bob}); err != nil {
		t.Error(err)
	}
	if _, err := r.Send(ctx, c, SendIn{Type: "broadcast", Content: "x"}); err != nil {
		t.Error(err)
	}
	// There is no supervisor here: whoever passes the gate is told that.
	if _, err := r.Send(ctx, c, SendIn{Type: "shutdown_request", Recipient: "bob"}); passed(err) != nil {
		t.Error(err)
	}
	for name, do := range map[string]func() error{
		"spawn":      func() error { _, err := r.Spawn(ctx, c, SpawnIn{Name: "x"}); return err },
		"stop":       func() error { _, err := r.Stop(ctx, c, supervisor.StopIn{}); return err },
		"restart":    func() error { _, err := r.Restart(ctx, c, []string{"bob"}); return err },
		"mode":       func() error { _, err := r.SetMode(ctx, c, "bob", team.ModePlan); return err },
		"claim":      func() error { _, err := r.TaskClaim(ctx, c, ""); return err },
		"start work": func() error { _, err := r.TaskUpdate(ctx, c, TaskUpdateIn{TaskID: one[0].ID, Status: &in}); return err },
		"plan":       func() error { _, err := r.AskPlan(ctx, c, PlanIn{Content: "x"}); return err },
		"scratchpad": func() error { _, err := r.ScratchpadMerge(ctx, c, []byte(`{"a":1}`), nil); return err },
	} {
		if err := do(); !team.IsCode(err, team.CodeDenied) || team.ReasonOf(err) != "mode" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
