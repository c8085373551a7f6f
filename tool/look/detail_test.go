package look

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestGitsOfChanges checks that a look at a member's changes starts git for the status and for the
// diff, and names the files that others have changed as well.
func TestGitsOfChanges(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(err)
	root := filepath.Join(dir, "repo")
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	ok(os.Mkdir(root, 0o700))
	git("init", "--quiet")
	git("commit", "--quiet", "--allow-empty", "-m", "first")
	ctx := t.Context()
	env := &tool.Env{Home: team.Home{Dir: filepath.Join(dir, "home")}}
	_, err = env.TeamCreate(ctx, tool.Person(), tool.TeamCreateIn{TeamName: "demo", Repo: root})
	ok(err)
	tm, err := env.Open(ctx, "demo")
	ok(err)
	defer func() { ok(tm.Close()) }()
	join := func(name string) ledger.Member {
		t.Helper()
		tree := filepath.Join(tm.Layout.Worktrees(), name)
		git("worktree", "add", "--quiet", "-b", "teamctl/demo/"+name, tree)
		m, _, err := tm.Ledger.AddMember(ctx, ledger.Member{SessionKey: "agent:" + name, Name: name, Role: team.RoleExecutor,
			Spec:    team.MemberSpec{Agent: team.AgentWorker, WorktreeMode: "own", Cwd: root},
			Desired: team.WantStopped, Observed: team.Pending, Activity: team.ActivityUnknown, Worktree: tree, Branch: "teamctl/demo/" + name}, true)
		ok(err)
		return m
	}
	ann, bob := join("ann"), join("bob")
	for _, m := range []ledger.Member{ann, bob} {
		ok(os.WriteFile(filepath.Join(m.Worktree, "new.txt"), []byte("new\n"), 0o600))
		ok(tm.SaveTree(ctx, m, "a test"))
	}

	real, err := exec.LookPath("git")
	ok(err)
	log := filepath.Join(dir, "gits")
	ok(os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	ok(os.WriteFile(filepath.Join(dir, "bin", "git"), fmt.Appendf(nil, "#!/bin/sh\necho \"$*\" >>%s\nexec %s \"$@\"\n", log, real), 0o700))
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	c, err := Changes(ctx, tm, "ann", "")
	ok(err)
	if d := cmp.Diff(map[string][]string{"new.txt": {"bob"}}, c.Also); d != "" || !strings.Contains(c.Patch, "+new") {
		t.Errorf("%s\n%s", d, c.Patch)
	}
	gits, err := os.ReadFile(log)
	if n := strings.Count(string(gits), "\n"); err != nil || n != 2 {
		t.Errorf("git was started %d times: %v\n%s", n, err, gits)
	}
}
