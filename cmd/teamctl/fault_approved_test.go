package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestApprovedSpawnOutlivesWhoApproved kills the command that approves a spawn between the answer
// and the spawn, without a supervisor. The next command starts the teammate, once, and the
// requester is notified.
func TestApprovedSpawnOutlivesWhoApproved(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("settings", "spawn-depth", "1")
	r.teamctl("settings", "delegation", "approval_required")
	r.agent("asker", "never", "sh", "-c", r.exe+" spawn child --worktree none --restart never -- fakeagent hold; exec sleep 1000")
	r.until("the spawn to wait for approval", func() bool {
		return strings.Contains(r.teamctl("approvals"), "delegation")
	})
	r.kill(r.supervisor())
	// No supervisor can start while the test holds its lock.
	lock, err := filelock.Lock(t.Context(), r.layout.SupervisorLock())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), r.exe, "approvals", "approve", "1")
	cmd.Dir, cmd.Env = r.dir, r.env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Every command waits for the supervisor as well, so the test reads the ledger itself.
	own, err := (&tool.Env{Home: r.layout.Home}).Open(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Close() }()
	r.until("the answer to be written", func() bool {
		list, err := own.Ledger.Approvals(t.Context(), ledger.ApprovalFilter{})
		return err == nil && len(list) == 1 && list[0].State == ledger.ApprovalApproved
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	config, err := os.ReadFile(r.layout.Config())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(config), `"child"`) {
		t.Fatal("the member was spawned before the kill: nothing is tested")
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	first := r.state("child", team.Running)
	r.until("the asker to be told", func() bool { return strings.Contains(r.teamctl("inbox", "asker"), "spawned after approval 1: child") })
	r.kill(r.supervisor())
	if again := r.state("child", team.Running); again.SessionKey != first.SessionKey || again.PID != first.PID || len(r.members()) != 2 {
		t.Errorf("%+v", r.members())
	}
}
