package tool

import (
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A member that waits at its own screen is listed with the command that leads there; one whose
// question is in the queue is not listed twice, and one that is gone is not listed.
func TestAtScreens(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	waits := func(name string, w team.WaitFor) Caller {
		t.Helper()
		c, _ := r.memberOf("claude", name, team.RoleExecutor)
		a, why := team.Waiting, "waiting for "+string(w)+": the line"
		if _, err := r.Ledger.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: c.Session, Activity: &a, WaitsFor: &w, Reason: &why}); err != nil {
			t.Fatal(err)
		}
		return c
	}
	r.memberOf("claude", "busy", team.RoleExecutor)
	waits("trust", team.WaitTrust)
	waits("login", team.WaitLogin)
	waits("dialog", team.WaitPermission)
	asked, gone, other := waits("asked", team.WaitPermission), waits("gone", team.WaitTrust), waits("other", team.WaitPermission)
	if _, err := r.AskPermission(t.Context(), asked, PermissionIn{ToolName: "Bash", Description: "ls", RequestID: AskByHook + "1"}); err != nil {
		t.Fatal(err)
	}
	// What an agent has asked by a tool is not what its program asks on the screen.
	if _, err := r.AskPermission(t.Context(), other, PermissionIn{ToolName: "Bash", Description: "ls"}); err != nil {
		t.Fatal(err)
	}
	// One whose program is unknown waits for what it has asked by a tool, and nothing else
	// is seen of it.
	plain, _ := r.memberOf("command", "plain", team.RoleExecutor)
	if _, err := r.AskPermission(t.Context(), plain, PermissionIn{ToolName: "Bash", Description: "make"}); err != nil {
		t.Fatal(err)
	}
	// A pause takes the place of the reason, and the request is answered in the queue as before.
	paused, _ := r.memberOf("command", "paused", team.RoleExecutor)
	if _, err := r.AskPlan(t.Context(), paused, PlanIn{Content: "a plan"}); err != nil {
		t.Fatal(err)
	}
	why := team.WhyPaused
	if _, err := r.Ledger.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: paused.Session, Reason: &why}); err != nil {
		t.Fatal(err)
	}
	over := team.Exited
	if _, err := r.Ledger.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: gone.Session, Observed: &over}); err != nil {
		t.Fatal(err)
	}

	list, err := r.AtScreens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]AtScreen{}
	for _, s := range list {
		got[s.Name] = s
	}
	for name, w := range map[string]team.WaitFor{"trust": team.WaitTrust, "login": team.WaitLogin, "dialog": team.WaitPermission, "other": team.WaitPermission} {
		s := got[name]
		if s.WaitsFor != w || s.Reason != "waiting for "+string(w)+": the line" || s.Attach != "teamctl attach "+name || s.Since == 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if len(list) != 4 {
		t.Errorf("listed: %+v", list)
	}
}
