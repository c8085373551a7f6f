package tool

import (
	"os"
	"testing"

	"github.com/teamctl/teamctl/internal/publish"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// The operations that plan mode (p) and delegate mode (d) allow; those in neither list are refused
// in both. Spawning and stopping are not among the tools of delegate mode: its member asks others
// to end by message.
func TestTableOfModes(t *testing.T) {
	t.Parallel()
	want := map[Operation]string{
		OpTeamCreate: "d", OpTeamDelete: "d", OpSend: "pd", OpBroadcast: "d", OpDelegate: "d", OpShutdown: "d",
		OpTaskAdd: "d", OpTaskRetry: "d", OpTaskVerify: "d", OpTaskManage: "d", OpAsk: "pd", OpPlan: "p", OpAnswer: "d", OpReview: "d",
	}
	for op := range roles() {
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

// What package team says about who takes tasks, for rooms below this one, is what the tables say.
func TestWhoTakesTasks(t *testing.T) {
	t.Parallel()
	for role, g := range roles()[OpTaskWork] {
		if role.TakesTasks() != (g != no) {
			t.Errorf("role %s: %v", role, role.TakesTasks())
		}
	}
	for _, m := range []team.Mode{"", team.ModeDefault, team.ModeAcceptEdits, team.ModeBypass, team.ModePlan, team.ModeDelegate, team.ModeDontAsk} {
		if m.TakesTasks() != ModeHas(m, OpTaskWork) {
			t.Errorf("mode %q: %v", m, m.TakesTasks())
		}
	}
}

// A leader in delegate mode gets the same refusals from the operations themselves, through every
// door.
func TestDelegateAtTheDoors(t *testing.T) {
	t.Parallel()
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
		"stop":       func() error { _, err := r.Stop(ctx, c, team.StopRequest{}); return err },
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

// Setting the current mode writes nothing, a new mode is written to config.json, and an
// unknown member or mode changes nothing.
func TestSetModeWritesOnlyWhatChanges(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	r.as("bob", team.RoleExecutor)
	set := func(name string, mode team.Mode) (wrote bool, err error) {
		t.Helper()
		before, serr := os.Stat(r.Layout.Config())
		if serr != nil {
			t.Fatal(serr)
		}
		_, err = r.SetMode(ctx, Person(), name, mode)
		after, serr := os.Stat(r.Layout.Config())
		if serr != nil {
			t.Fatal(serr)
		}
		wrote = !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime())
		return wrote, err
	}
	inFile := func() string {
		t.Helper()
		c, err := team.ReadConfig(r.Layout.Config())
		if err != nil || c.Member("bob") == nil {
			t.Fatalf("%+v, %v", c, err)
		}
		return c.Member("bob").Mode
	}
	if err := publish.Config(ctx, r.Layout, r.Ledger); err != nil {
		t.Fatal(err)
	}
	if wrote, err := set("bob", team.ModePlan); err != nil || !wrote || inFile() != "plan" {
		t.Errorf("a new mode: %v, wrote %v, %q", err, wrote, inFile())
	}
	if wrote, err := set("bob", team.ModePlan); err != nil || wrote {
		t.Errorf("the same mode: %v, wrote %v", err, wrote)
	}
	wrote, err := set("nobody", team.ModeDefault)
	if denied(t, err, team.CodeNotFound, team.ReasonMemberNotFound); wrote {
		t.Error("an unknown member: config.json was written")
	}
	wrote, err = set("bob", "root")
	if !team.IsCode(err, team.CodeInvalid) || wrote || inFile() != "plan" {
		t.Errorf("an unknown mode: %v, wrote %v, %q", err, wrote, inFile())
	}
	wrote, err = set("bob", team.ModeBypass) // it was not spawned for it
	if denied(t, err, team.CodeDenied, team.ReasonBypass); wrote || inFile() != "plan" {
		t.Errorf("bypass: wrote %v, %q", wrote, inFile())
	}
}

// A member spawned without a mode inherits how its lead answers permissions; it does
// not inherit planning, delegation or skipped permissions.
func TestModeOfTheLeadIsHandedDown(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	for lead, want := range map[team.Mode]team.Mode{
		team.ModeDefault: team.ModeDefault, team.ModeAcceptEdits: team.ModeAcceptEdits, team.ModeDontAsk: team.ModeDontAsk,
		team.ModePlan: team.ModeDefault, team.ModeDelegate: team.ModeDefault, team.ModeBypass: team.ModeDefault,
	} {
		m, err := r.Ledger.Member(t.Context(), team.LeadName)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Ledger.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: m.SessionKey, Mode: &lead}); err != nil {
			t.Fatal(err)
		}
		in, err := r.spawnIn(t.Context(), Person(), SpawnIn{Name: "a", MemberSpec: team.MemberSpec{WorktreeMode: "none", Cwd: "/"}})
		if err != nil || in.Spec.Mode != want {
			t.Errorf("lead in %s: %q, %v; want %q", lead, in.Spec.Mode, err, want)
		}
		in, err = r.spawnIn(t.Context(), Person(), SpawnIn{Name: "a", MemberSpec: team.MemberSpec{WorktreeMode: "none", Cwd: "/", Mode: "plan"}})
		if err != nil || in.Spec.Mode != team.ModePlan {
			t.Errorf("lead in %s, asked for plan: %q, %v", lead, in.Spec.Mode, err)
		}
	}
}
