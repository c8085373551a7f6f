package acp

import (
	"context"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// An agent on the protocol is put into its own mode of the kind, and the answer to its plan says
// in which mode it continues.
func TestACPModes(t *testing.T) {
	t.Parallel()
	answer := team.Reply{Allow: true, Mode: team.ModeAcceptEdits}
	var asked team.Ask
	r, a, _ := acpRig(t, func(_ context.Context, ask team.Ask) (team.Reply, error) {
		asked = ask
		return answer, nil
	})
	set := func(mode team.Mode, has bool) {
		t.Helper()
		if got, err := a.SetMode(t.Context(), mode); got != has || err != nil {
			t.Fatalf("%s: %v, %v", mode, got, err)
		}
	}
	turn := func(script string) {
		t.Helper()
		if _, err := a.Prompt(t.Context(), script, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	set(team.ModeBypass, false)
	set(team.ModePlan, true)
	turn("@@shell touch it")
	if r.Exists("it") || asked.ID != "" {
		t.Fatal("it has changed something in plan mode")
	}
	turn(`@@call ExitPlanMode {"plan":"# touch it","planFilePath":"/plans/a.md"}`)
	if asked.For != team.WaitPlan || asked.Plan != "# touch it" || asked.PlanPath != "/plans/a.md" {
		t.Errorf("asked %+v", asked)
	}
	if a.nowMode() != "acceptEdits" {
		t.Errorf("it goes on in %s", a.nowMode())
	}
	set(team.ModePlan, true)
	set(team.ModeDefault, true)
	answer = team.Reply{Allow: true}
	turn("@@shell touch it")
	if !r.Exists("it") || asked.For != team.WaitPermission {
		t.Errorf("it may not after its plan; asked %+v", asked)
	}
}
