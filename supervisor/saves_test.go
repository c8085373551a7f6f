package supervisor

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// TestSavesWhenAtRest: the state of an agent of any kind is saved when it reports idle, completes a
// task or ends, once for each change.
func TestSavesWhenAtRest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	root := filepath.Join(t.TempDir(), "repo")
	mkdir(t, root)
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"}} {
		if out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	if _, err := r.led.UpdateTeam(t.Context(), ledger.TeamPatch{Repo: &root}); err != nil {
		t.Fatal(err)
	}
	s := r.supervisor()
	out, err := s.Spawn(t.Context(), team.SpawnRequest{Name: "ann", Spec: team.MemberSpec{
		Agent: "command", Command: []string{"agent"}, Restart: team.RestartNever, WorktreeMode: "own", Cwd: root,
	}})
	if err != nil {
		t.Fatal(err)
	}
	m := out.Member
	repo, _, err := worktree.OpenWorktree(t.Context(), m.Worktree)
	if err != nil {
		t.Fatal(err)
	}
	saves := func() []team.SavedWork {
		list, err := repo.Saves(t.Context(), worktree.KindCheckpoint, "t", "ann")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	wait := func(n int, what string) {
		t.Helper()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		deadline := time.After(5 * time.Minute)
		for len(saves()) != n {
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("%s: %d checkpoints, want %d", what, len(saves()), n)
			}
		}
	}
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(m.Worktree, "file"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	be := func(a team.Activity) {
		if _, err := r.led.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: m.SessionKey, Activity: &a}); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	be(team.Idle)
	wait(1, "idle")
	be(team.Working)
	be(team.Idle) // nothing has changed since
	write("two")
	r.m.agent(r.layout, "ann").end(backends.Exit{Known: true, Code: 1})
	r.waitState("ann", team.Failed)
	wait(2, "its end")
}
