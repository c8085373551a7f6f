package supervisor

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/team"
)

// TestManySpawnsOfOneName: a name can be spawned whatever number of its worktrees, branches and
// members exist.
func TestManySpawnsOfOneName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	root := filepath.Join(t.TempDir(), "repo")
	mkdir(t, root)
	git := func(stdin string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", root}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	git("", "init", "-q")
	git("", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
	if _, err := r.led.UpdateTeam(t.Context(), ledger.TeamPatch{Repo: &root}); err != nil {
		t.Fatal(err)
	}
	s := r.supervisor()
	spawn := func() ledger.Member {
		t.Helper()
		out, err := s.Spawn(t.Context(), team.SpawnRequest{Name: "w", Spec: team.MemberSpec{
			Agent: "command", Command: []string{"agent"}, Restart: team.RestartNever, WorktreeMode: "own", Cwd: root, Fresh: true,
		}})
		if err != nil {
			t.Fatal(err)
		}
		<-r.m.events
		return out.Member
	}
	// What is there of 50 names: of half the directory, of half the branch.
	var refs strings.Builder
	for n := 1; n <= 50; n++ {
		name := "w"
		if n > 1 {
			name = fmt.Sprintf("w-%d", n)
		}
		if n%2 == 0 {
			mkdir(t, filepath.Join(r.layout.Worktrees(), name, "kept")) // git takes one that is empty
		} else {
			fmt.Fprintf(&refs, "update refs/heads/%s HEAD\n", trees.BranchName("t", name, ""))
		}
	}
	git(refs.String(), "update-ref", "--stdin")
	if m := spawn(); m.Name != "w" || filepath.Base(m.Worktree) != "w-51" || m.Branch != trees.BranchName("t", "w-51", "") {
		t.Errorf("%s in %s on %s", m.Name, m.Worktree, m.Branch)
	}

	// The name is taken now, and so are the next.
	for n := 2; n <= 60; n++ {
		_, _, err := r.led.AddMember(t.Context(), ledger.Member{SessionKey: team.TeammateSessionKey("command"), Name: "w",
			Desired: team.WantStopped, Observed: team.Pending, Spec: team.MemberSpec{WorktreeMode: "none"}}, false)
		if err != nil {
			t.Fatal(err)
		}
	}
	if m := spawn(); m.Name != "w-61" {
		t.Errorf("the 61st of the roster is called %s", m.Name)
	}
}
