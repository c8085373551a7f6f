package trees

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

func TestMain(m *testing.M) {
	for k, v := range map[string]string{"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1"} {
		if err := os.Setenv(k, v); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	args = append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)
	out, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// newTrees returns a team with a repository, and its members.
func newTrees(t *testing.T, names ...string) (Trees, ledger.TeamRow, []ledger.Member) {
	t.Helper()
	tm, members := looptest.NewTeam(t, names...)
	repo := filepath.Join(t.TempDir(), "repo")
	if err := os.Mkdir(repo, 0o700); err != nil {
		t.Fatal(err)
	}
	git(t, repo, "init", "-q", "-b", "main")
	git(t, repo, "commit", "-q", "--allow-empty", "-m", "first")
	row, err := tm.Ledger.UpdateTeam(t.Context(), ledger.TeamPatch{Repo: &repo})
	if err != nil {
		t.Fatal(err)
	}
	for i := range members {
		members[i].Spec.WorktreeMode = "own"
	}
	return New(t.Context(), tm), row, members
}

// now returns a member's current row, with a worktree of its own.
func now(t *testing.T, s Trees, m ledger.Member) ledger.Member {
	t.Helper()
	row, err := s.Ledger.MemberBySession(t.Context(), m.SessionKey)
	if err != nil {
		t.Fatal(err)
	}
	row.Spec.WorktreeMode = "own"
	return row
}

// A worktree is recorded before it is created, found again by the next start, and created again
// from its branch after it was deleted.
func TestEnsure(t *testing.T) {
	t.Parallel()
	s, row, members := newTrees(t, "ann")
	tree, created, err := s.Ensure(t.Context(), row, members[0])
	if err != nil || !created || tree.Branch != "teamctl/t/ann" || !OwnBranch("t", tree.Branch) {
		t.Fatalf("%+v, created %v: %v", tree, created, err)
	}
	m := now(t, s, members[0])
	if m.Worktree != tree.Path || m.Branch != tree.Branch {
		t.Errorf("the ledger has %s on %s", m.Worktree, m.Branch)
	}
	git(t, tree.Path, "commit", "-q", "--allow-empty", "-m", "work")
	head := git(t, tree.Path, "rev-parse", "HEAD")
	if again, created, err := s.Ensure(t.Context(), row, m); err != nil || created || again.Path != tree.Path {
		t.Errorf("again: %+v, created %v: %v", again, created, err)
	}
	if err := os.RemoveAll(tree.Path); err != nil {
		t.Fatal(err)
	}
	if again, created, err := s.Ensure(t.Context(), row, m); err != nil || created || git(t, again.Path, "rev-parse", "HEAD") != head {
		t.Errorf("after its deletion: %+v, created %v: %v", again, created, err)
	}
}

// A path or a branch that exists belongs to someone else: the worktree gets the next number.
func TestEnsureTaken(t *testing.T) {
	t.Parallel()
	s, row, members := newTrees(t, "ann")
	git(t, row.Repo, "branch", "teamctl/t/ann")
	if err := os.MkdirAll(filepath.Join(s.Layout.Worktrees(), "ann-2"), 0o700); err != nil {
		t.Fatal(err)
	}
	tree, _, err := s.Ensure(t.Context(), row, members[0])
	if err != nil || filepath.Base(tree.Path) != "ann-3" || tree.Branch != "teamctl/t/ann-3" {
		t.Fatalf("%+v: %v", tree, err)
	}
	if err := s.Drop(tree, true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(tree.Path); err == nil {
		t.Error("a dropped worktree is there")
	}
	if out := git(t, row.Repo, "branch", "--list", tree.Branch); out != "" {
		t.Errorf("a dropped worktree left its branch: %s", out)
	}
}

// No worktree is created for members without one of their own.
func TestEnsureNone(t *testing.T) {
	t.Parallel()
	s, row, members := newTrees(t, "ann")
	m := members[0]
	m.Spec.WorktreeMode = "none"
	if tree, created, err := s.Ensure(t.Context(), row, m); tree != nil || created || err != nil {
		t.Errorf("none: %+v, %v, %v", tree, created, err)
	}
	m.Spec.WorktreeMode = row.Repo
	if tree, created, err := s.Ensure(t.Context(), row, m); err != nil || created || tree.Path != row.Repo {
		t.Errorf("a directory: %+v, %v, %v", tree, created, err)
	}
	m.Spec.Repo = "docs"
	if _, _, err := s.Ensure(t.Context(), row, m); team.ReasonOf(err) != team.ReasonRepositoryUnknown {
		t.Errorf("an unknown repository: %v", err)
	}
}

// A new member gets the worktree left by the last member of its name, and with Fresh a new one; an
// unused leftover is removed then.
func TestLeft(t *testing.T) {
	t.Parallel()
	s, row, members := newTrees(t, "ann")
	tree, _, err := s.Ensure(t.Context(), row, members[0])
	if err != nil {
		t.Fatal(err)
	}
	at := int64(1)
	own := members[0].Spec
	own.WorktreeMode = "own"
	if _, err := s.Ledger.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: members[0].SessionKey, StartedAt: &at}); err != nil {
		t.Fatal(err)
	}
	if err := s.Ledger.RemoveMember(t.Context(), members[0].SessionKey); err != nil {
		t.Fatal(err)
	}
	all, err := s.Ledger.Members(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if all[i].Name == "ann" {
			all[i].Spec = own
		}
	}
	if left := Left(all); len(left) != 1 || left[0].Worktree != tree.Path {
		t.Fatalf("left: %+v", left)
	}
	all = append(all, ledger.Member{Name: "bob", Spec: team.MemberSpec{WorktreeMode: tree.Path}})
	if left := Left(all); len(left) != 0 {
		t.Errorf("left, and used by another: %+v", left)
	}
}

// A branch that cannot be looked up is not one that is gone: the start fails, and the next one gets
// the worktree that was left.
func TestLeftWhileGitFails(t *testing.T) {
	t.Parallel()
	s, row, members := newTrees(t, "ann")
	at := int64(1)
	own := members[0]
	own.Spec.WorktreeMode = "own"
	if err := s.Ledger.RemoveMember(t.Context(), own.SessionKey); err != nil {
		t.Fatal(err)
	}
	add := func(session string) ledger.Member {
		t.Helper()
		m, _, err := s.Ledger.AddMember(t.Context(), ledger.Member{Name: "ann", SessionKey: session, Spec: own.Spec}, true)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := add("first")
	tree, _, err := s.Ensure(t.Context(), row, first)
	if err == nil {
		_, err = s.Ledger.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: first.SessionKey, StartedAt: &at})
	}
	if err = errors.Join(err, s.Ledger.RemoveMember(t.Context(), first.SessionKey), os.RemoveAll(tree.Path)); err != nil {
		t.Fatal(err)
	}
	repo, err := worktree.OpenRepo(t.Context(), row.Repo)
	if err != nil {
		t.Fatal(err)
	}
	// The files of the repository do not show its branches, and git refuses.
	branch := filepath.Join(row.Repo, ".git", "refs", "heads", "teamctl", "t", "ann")
	objects := filepath.Join(row.Repo, ".git", "objects")
	if err := errors.Join(os.Rename(branch, branch+"-hidden"), os.Symlink(branch, branch), os.Rename(objects, objects+"-hidden")); err != nil {
		t.Fatal(err)
	}
	second := add("second")
	if m, err := s.again(t.Context(), repo, second); err == nil {
		t.Errorf("it gets %q", m.Worktree)
	}
	if err := errors.Join(os.Rename(branch+"-hidden", branch), os.Rename(objects+"-hidden", objects)); err != nil {
		t.Fatal(err)
	}
	if again, _, err := s.Ensure(t.Context(), row, second); err != nil || again.Path != tree.Path || again.Branch != tree.Branch {
		t.Errorf("%+v, %v; %s on %s was left", again, err, tree.Path, tree.Branch)
	}
}

// The environment of a worktree has its ports, and the member's own variables win. A setup command
// runs once, and only with consent.
func TestFurnish(t *testing.T) {
	t.Parallel()
	s, row, members := newTrees(t, "ann")
	if _, _, err := s.Ensure(t.Context(), row, members[0]); err != nil {
		t.Fatal(err)
	}
	m := now(t, s, members[0])
	m.Spec.Env = map[string]string{"PORT": "mine", "A": "b"}
	b := team.Bootstrap{}
	b.Setup = []string{"echo x >> ../ran"}
	if err := s.Ledger.Set(t.Context(), SettingBootstrap, b); err != nil {
		t.Fatal(err)
	}
	env, err := s.Furnish(t.Context(), row, m)
	if err != nil || env["PORT"] != "mine" || env["A"] != "b" || len(env) < 3 {
		t.Fatalf("%v: %v", env, err)
	}
	if in := SetupIn(b, s.Layout, m, nil); (len(in.Run) > 0) != b.Allowed() || in.Limit != setupLimit {
		t.Errorf("set up by %+v", in)
	}
	events, err := s.Ledger.Events(t.Context(), 0, 0, ledger.EventFilter{What: team.EventWorktreeSetup})
	if err != nil || len(events) != 1 || !b.Allowed() && !strings.Contains(string(events[0].Data), "nobody has allowed them") {
		t.Errorf("told %+v: %v", events, err)
	}
	if _, err := s.Furnish(t.Context(), row, m); err != nil {
		t.Fatal(err)
	}
	if events, err = s.Ledger.Events(t.Context(), 0, 0, ledger.EventFilter{What: team.EventWorktreeSetup}); err != nil || len(events) != 1 {
		t.Errorf("set up again: %+v: %v", events, err)
	}
}

// The unfinished work of a killed process is undone in every repository of the team.
func TestRepair(t *testing.T) {
	t.Parallel()
	s, row, members := newTrees(t, "ann")
	tree, _, err := s.Ensure(t.Context(), row, members[0])
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Repair(ctx, row.Repo) // ends with its context
	s.Repair(t.Context(), row.Repo)
	repo, err := worktree.OpenRepo(t.Context(), row.Repo)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Status(t.Context(), tree.Path); err != nil {
		t.Errorf("a whole worktree after a repair: %v", err)
	}
}
