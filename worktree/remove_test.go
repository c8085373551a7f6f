package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

func TestRemove(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	f.write("wt/w/work.txt", "work")
	sha, _, _, err := f.repo.Commit(f.ctx(), w.Path, CommitIn{Message: "work"})
	f.must(err)
	f.write("wt/w/build/ignored", "ignored")
	f.must(os.Chmod(f.path("wt/w/build"), 0o500)) // like a module cache
	res, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{DeleteBranch: true})
	f.must(err)
	want := Removed{Path: w.Path, Branch: "team/w", Head: sha, BranchKept: "1 of its commits are in no other branch"}
	if d := cmp.Diff(want, res); d != "" {
		t.Error(d)
	}
	if f.exists(w.Path) || f.exists(f.path("main/.git/worktrees")) {
		t.Error("not removed")
	}
	// The branch is merged now and may be deleted.
	f.git(f.root, "merge", "--quiet", "team/w")
	_, err = f.repo.Create(f.ctx(), CreateIn{Path: w.Path, Branch: "team/w", Reuse: true})
	f.must(err)
	res, err = f.repo.Remove(f.ctx(), w.Path, RemoveIn{DeleteBranch: true, Background: true})
	f.must(err)
	if !res.BranchDeleted || f.branches() != "main" || f.exists(w.Path) {
		t.Errorf("%+v", res)
	}
	f.repo.Wait()
	// Removing it again is not an error.
	if res, err = f.repo.Remove(f.ctx(), w.Path, RemoveIn{}); err != nil || !res.Gone {
		t.Errorf("%+v %v", res, err)
	}
	// Without DeleteBranch the branch stays.
	f.create("v")
	if res, err = f.repo.Remove(f.ctx(), f.path("wt/v"), RemoveIn{}); err != nil || res.BranchDeleted || !strings.Contains(f.branches(), "team/v") {
		t.Errorf("%+v %v", res, err)
	}
}

func TestRemoveKeeps(t *testing.T) {
	t.Parallel()
	clone := func(f *fixture, at string) string {
		f.git(f.dir, "init", "--quiet", "--bare", f.path("remote.git"))
		f.git(f.dir, "clone", "--quiet", f.path("remote.git"), f.path(at))
		f.git(f.path(at), "commit", "--quiet", "--allow-empty", "-m", "x")
		return f.path(at)
	}
	cases := []struct {
		name   string
		given  func(f *fixture, w Worktree)
		code   team.Code
		reason string
		force  bool // also kept with Force
	}{
		{"untracked", func(f *fixture, w Worktree) { f.write("wt/w/new", "n") }, team.CodeConflict, team.ReasonWorktreeDirty, false},
		{"staged", func(f *fixture, w Worktree) { f.write("wt/w/new", "n"); f.git(w.Path, "add", "new") }, team.CodeConflict, team.ReasonWorktreeDirty, false},
		{"changed", func(f *fixture, w Worktree) { f.write("wt/w/a.txt", "n") }, team.CodeConflict, team.ReasonWorktreeDirty, false},
		{"deleted", func(f *fixture, w Worktree) { f.must(os.Remove(f.path("wt/w/a.txt"))) }, team.CodeConflict, team.ReasonWorktreeDirty, false},
		{"assumed unchanged", func(f *fixture, w Worktree) {
			f.git(w.Path, "update-index", "--assume-unchanged", "a.txt")
			f.write("wt/w/a.txt", "n")
		}, team.CodeConflict, team.ReasonWorktreeDirty, false},
		{"skip-worktree", func(f *fixture, w Worktree) {
			f.git(w.Path, "update-index", "--skip-worktree", "a.txt")
			f.write("wt/w/a.txt", "n")
		}, team.CodeConflict, team.ReasonWorktreeDirty, false},
		{"loose commits", func(f *fixture, w Worktree) {
			f.git(w.Path, "checkout", "--quiet", "--detach")
			f.git(w.Path, "commit", "--quiet", "--allow-empty", "-m", "loose")
		}, team.CodeConflict, team.ReasonWorktreeDirty, false},
		{"operation", func(f *fixture, w Worktree) { f.git(w.Path, "bisect", "start") }, team.CodeConflict, team.ReasonWorktreeDirty, false},
		{"index.lock", func(f *fixture, w Worktree) { f.write("main/.git/worktrees/w/index.lock", "") }, team.CodeConflict, team.ReasonLockFile, false},
		{"locked", func(f *fixture, w Worktree) { f.git(f.root, "worktree", "lock", w.Path) }, team.CodeConflict, team.ReasonWorktreeLocked, true},
		{"broken index", func(f *fixture, w Worktree) { f.write("main/.git/worktrees/w/index", "junk") }, team.CodeConflict, team.ReasonWorktreeUnknown, true},
		{"broken head", func(f *fixture, w Worktree) { f.write("main/.git/worktrees/w/HEAD", "junk") }, team.CodeConflict, team.ReasonWorktreeUnknown, true},
		{"clone with commits", func(f *fixture, w Worktree) { clone(f, "wt/w/clone") }, team.CodeConflict, team.ReasonWorktreeDirty, true},
		{"clone with a stash", func(f *fixture, w Worktree) {
			c := clone(f, "wt/w/clone")
			f.write("wt/w/clone/x", "x")
			f.commitAll(c, "x")
			f.git(c, "push", "--quiet", "origin", "HEAD:main")
			f.write("wt/w/clone/x", "y")
			f.git(c, "stash", "--quiet")
		}, team.CodeConflict, team.ReasonWorktreeDirty, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			w := f.create("w")
			c.given(f, w)
			want, list := contents(t, w.Path), f.git(f.root, "worktree", "list", "--porcelain")
			_, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{})
			if !c.force || team.ReasonOf(err) != team.ReasonWorktreeNested {
				wantErr(t, err, c.code, c.reason)
			}
			if team.HintOf(err) == "" {
				t.Errorf("no hint: %v", err)
			}
			if c.force {
				_, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{Force: true, Team: "t", Agent: "a"})
				if team.CodeOf(err) != c.code {
					t.Errorf("forced: %v", err)
				}
			}
			if d := cmp.Diff(want, contents(t, w.Path)); d != "" || f.git(f.root, "worktree", "list", "--porcelain") != list {
				t.Error("not kept", d)
			}
			if c.name == "broken head" {
				f.write("main/.git/worktrees/w/HEAD", "ref: refs/heads/team/w\n") // for the final checks
			}
			if c.name == "broken index" {
				f.must(os.Remove(f.path("main/.git/worktrees/w/index")))
			}
		})
	}
}

func TestRemoveBusy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	cmd := exec.Command("cat")
	cmd.Dir = f.path("wt/w/sub")
	in, err := cmd.StdinPipe()
	f.must(err)
	f.must(cmd.Start())
	_, err = f.repo.Remove(f.ctx(), w.Path, RemoveIn{})
	wantErr(t, err, team.CodeConflict, team.ReasonWorktreeBusy)
	f.write("wt/w/new", "n")
	res, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{Force: true, Team: "t", Agent: "a"})
	f.must(err)
	if len(res.Busy) != 1 || res.Busy[0] != cmd.Process.Pid || res.RescueRef == "" {
		t.Errorf("%+v", res)
	}
	f.must(in.Close())
	f.must(cmd.Wait())
}

func TestRemoveForcedKeepsLooseCommits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	f.git(w.Path, "checkout", "--quiet", "--detach")
	f.git(w.Path, "commit", "--quiet", "--allow-empty", "-m", "loose")
	loose := f.git(w.Path, "rev-parse", "HEAD")
	_, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{Force: true})
	wantErr(t, err, team.CodeInvalid, team.ReasonBadInput)
	res, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{Force: true, Team: "t", Agent: "a"})
	f.must(err)
	if f.git(f.root, "rev-parse", res.RescueRef) != loose {
		t.Errorf("%+v", res)
	}
	// A clean worktree on a branch has nothing to save, even if forced.
	f.create("v")
	res, err = f.repo.Remove(f.ctx(), f.path("wt/v"), RemoveIn{Force: true, Team: "t", Agent: "a"})
	if err != nil || res.RescueRef != "" {
		t.Errorf("%+v %v", res, err)
	}
}

// Only what is, or was, registered in this repository is ever deleted.
func TestRemoveNotOurs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	force := RemoveIn{Force: true, Team: "t", Agent: "a"}
	_, err := f.repo.Remove(f.ctx(), f.root, force)
	wantErr(t, err, team.CodeDenied, team.ReasonMainWorktree)
	f.write("plain/file", "x")
	f.git(f.dir, "clone", "--quiet", f.root, f.path("clone"))
	f.git(f.path("clone"), "worktree", "add", "--quiet", f.path("theirs"))
	f.must(os.Symlink(f.path("plain"), f.path("link")))
	for _, p := range []string{"plain", "clone", "theirs", "link", "main/sub"} {
		_, err := f.repo.Remove(f.ctx(), f.path(p), force)
		wantErr(t, err, team.CodeInvalid, team.ReasonNotWorktree)
		if !f.exists(f.path(p)) {
			t.Errorf("%s is gone", p)
		}
	}
}

// The registration was pruned while the worktree still existed.
func TestRemoveOrphan(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	f.write("wt/w/new.txt", "new")
	f.must(os.Rename(w.Path, f.path("away")))
	f.git(f.root, "worktree", "prune")
	f.must(os.Rename(f.path("away"), w.Path))
	_, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{})
	wantErr(t, err, team.CodeConflict, team.ReasonWorktreeUnknown)
	want := contents(t, w.Path)
	res, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{Force: true, Team: "t", Agent: "a"})
	f.must(err)
	w2, err := f.repo.Restore(f.ctx(), RestoreIn{Ref: res.RescueRef, Path: f.path("wt/back")})
	f.must(err)
	if d := cmp.Diff(want, contents(t, w2.Path)); d != "" || f.exists(w.Path) {
		t.Error(d)
	}
}

// The directory is missing: its registration is dropped, others stay, and
// staged work is saved.
func TestRemoveMissing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w, other := f.create("w"), f.create("other")
	f.write("wt/w/staged.txt", "staged")
	f.git(w.Path, "add", "staged.txt")
	f.must(os.RemoveAll(w.Path))
	f.must(os.Rename(other.Path, f.path("unmounted")))
	res, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{Team: "t", Agent: "a", DeleteBranch: true})
	f.must(err)
	if !res.BranchDeleted || f.git(f.root, "show", res.RescueRef+":staged.txt") != "staged" || !strings.Contains(res.RescueRef, "/t/a/") {
		t.Errorf("%+v", res)
	}
	f.must(os.Rename(f.path("unmounted"), other.Path))
	if st, err := f.repo.Status(f.ctx(), other.Path); err != nil || !st.Clean() {
		t.Errorf("%v %+v", err, st)
	}
}

func TestRemoveSubmodules(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git(f.dir, "init", "--quiet", "--initial-branch=main", f.path("lib"))
	f.write("lib/l", "l")
	f.commitAll(f.path("lib"), "lib")
	f.git(f.root, "submodule", "add", "--quiet", f.path("lib"), "lib")
	f.commitMain("submodule")
	w := f.create("w")
	f.git(w.Path, "submodule", "update", "--init", "--quiet")
	lib := filepath.Join(w.Path, "lib")
	f.write("wt/w/lib/new", "n")
	_, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{})
	wantErr(t, err, team.CodeConflict, team.ReasonWorktreeNested)
	f.commitAll(lib, "not pushed")
	sha := f.head(lib)
	f.git(w.Path, "commit", "--quiet", "-am", "bump")
	_, err = f.repo.Remove(f.ctx(), w.Path, RemoveIn{Force: true, Team: "t", Agent: "a"})
	wantErr(t, err, team.CodeConflict, team.ReasonWorktreeNested)
	f.git(w.Path, "submodule", "deinit", "--quiet", "--all") // its git directory stays
	_, err = f.repo.Remove(f.ctx(), w.Path, RemoveIn{})
	wantErr(t, err, team.CodeConflict, team.ReasonWorktreeNested)
	f.git(w.Path, "submodule", "update", "--init", "--quiet")
	f.git(lib, "push", "--quiet", "origin", sha+":refs/heads/pushed")
	_, err = f.repo.Remove(f.ctx(), w.Path, RemoveIn{})
	f.must(err)
	if f.exists(w.Path) {
		t.Error("not removed")
	}
}

// A worktree without its .git file is kept, and the hint says how to restore
// it.
func TestRemoveWithoutGitFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	f.must(os.Remove(filepath.Join(w.Path, ".git")))
	_, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{Force: true, Team: "t", Agent: "a"})
	wantErr(t, err, team.CodeInvalid, team.ReasonNotWorktree)
	hint := strings.Fields(strings.TrimPrefix(team.HintOf(err), "git "))
	if len(hint) == 0 {
		t.Fatal("no hint")
	}
	f.git(f.dir, hint...)
	_, err = f.repo.Remove(f.ctx(), w.Path, RemoveIn{})
	f.must(err)
}

// Ignored files are in no snapshot and are deleted; an ignored repository with
// work of its own is not.
func TestRemoveKeepsIgnoredRepository(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	lib := filepath.Join(w.Path, "build", "deep", "lib")
	f.git(f.dir, "init", "--quiet", "--bare", f.path("lib.git"))
	f.git(f.dir, "clone", "--quiet", f.path("lib.git"), lib)
	f.write("wt/w/build/deep/lib/own", "own")
	// Files that only resemble a repository, as in test data of packages, do
	// not count.
	f.write("wt/w/build/fixture/.git/config", "")
	f.write("wt/w/build/broken/.git", "gitdir: /nowhere\n")
	keeps := func(state, why string) {
		t.Helper()
		for _, in := range []RemoveIn{{}, {Force: true, Team: "t", Agent: "a"}} {
			_, err := f.repo.Remove(f.ctx(), w.Path, in)
			wantErr(t, err, team.CodeConflict, team.ReasonWorktreeNested)
			if err == nil || !strings.Contains(err.Error(), "build/deep/lib: "+why) {
				t.Fatalf("%s: %v", state, err)
			}
		}
	}
	keeps("not committed", "it has uncommitted work")
	f.commitAll(lib, "own")
	keeps("committed", "it has commits that are on no remote")
	f.git(lib, "push", "--quiet", "origin", "HEAD:refs/heads/main")
	// Another worktree, of any repository, also counts as work.
	f.git(f.root, "worktree", "add", "--quiet", "--detach", filepath.Join(w.Path, "build", "inner"))
	f.write("wt/w/build/inner/new", "new")
	_, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{})
	wantErr(t, err, team.CodeConflict, team.ReasonWorktreeNested)
	f.git(f.root, "worktree", "remove", "--force", filepath.Join(w.Path, "build", "inner"))
	_, err = f.repo.Remove(f.ctx(), w.Path, RemoveIn{})
	f.must(err)
	if f.exists(w.Path) {
		t.Error("not removed")
	}
}

func TestRemoveKilled(t *testing.T) {
	t.Parallel()
	steps := []string{"inspected", "remove-begun", "moved", "rescued", "doomed", "dropped", "branch-done", "deleted"}
	if testing.Short() {
		steps = []string{"remove-begun", "rescued", "doomed"}
	}
	for _, force := range []bool{false, true} {
		for _, step := range steps {
			if step == "rescued" && !force {
				continue
			}
			name := step
			if force {
				name += " forced"
			}
			t.Run(name, func(t *testing.T) {
				f := newFixture(t)
				w := f.create("w")
				in := RemoveIn{DeleteBranch: true}
				if force {
					f.write("wt/w/precious.txt", "precious")
					in = RemoveIn{Force: true, Team: "t", Agent: "a", DeleteBranch: true}
				}
				want := contents(t, w.Path)
				killed(t, childJob{Repo: f.root, Do: "remove", Path: w.Path, Remove: in, KillAt: step})
				_, err := f.repo.Repair(f.ctx())
				f.must(err)
				refs := f.git(f.root, "for-each-ref", "--format=%(refname)", "refs/teamctl/rescue")
				switch undone := step == "inspected" || step == "remove-begun" || step == "moved" || step == "rescued"; {
				case undone:
					if d := cmp.Diff(want, contents(t, w.Path)); d != "" {
						t.Error("not put back", d)
					}
					if _, err := f.repo.Status(f.ctx(), w.Path); err != nil {
						t.Error(err)
					}
				case force && f.git(f.root, "show", refs+":precious.txt") != "precious":
					t.Error("lost")
				case f.exists(w.Path) || f.branches() != "main":
					t.Error("not completed")
				}
				res, err := f.repo.Remove(f.ctx(), w.Path, in) // the next run completes the removal
				f.must(err)
				if f.exists(w.Path) || f.branches() != "main" {
					t.Errorf("%+v", res)
				}
			})
		}
	}
}

// Something else was created at the path while the removal was interrupted.
func TestRemoveKilledThenTaken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	killed(t, childJob{Repo: f.root, Do: "remove", Path: w.Path, KillAt: "moved"})
	f.write("wt/w/new tenant", "n")
	notes, err := f.repo.Repair(f.ctx())
	f.must(err)
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "kept ") {
		t.Errorf("%q", notes)
	}
	aside, err := filepath.Glob(f.path("wt/.teamctl-removed-*"))
	if err != nil || len(aside) != 1 || !f.exists(filepath.Join(aside[0], "a.txt")) {
		t.Fatal(aside, err)
	}
	// Restore by hand, as the note says.
	f.must(os.RemoveAll(w.Path))
	f.must(os.Rename(aside[0], w.Path))
	_, err = f.repo.Remove(f.ctx(), w.Path, RemoveIn{})
	f.must(err)
}

// Concurrent writers and removals: nothing fails and nothing is left.
func TestRemoveManyAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	errs := make(chan error, 6)
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		go func() {
			w, err := f.repo.Create(f.ctx(), CreateIn{Path: f.path("wt/" + name), Branch: "team/" + name})
			if err == nil {
				_, err = f.repo.Remove(f.ctx(), w.Path, RemoveIn{DeleteBranch: true})
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if f.branches() != "main" || f.exists(f.path("main/.git/worktrees")) {
		t.Error("left over")
	}
}

// Work that comes after the check keeps a worktree: the last inspection finds it.
func TestRemoveChecked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	in := RemoveIn{DeleteBranch: true}
	f.must(f.repo.CheckRemove(f.ctx(), []string{w.Path}, in)[0])
	in.Checked = true
	f.write("wt/w/late.txt", "late")
	want := contents(t, w.Path)
	if _, err := f.repo.Remove(f.ctx(), w.Path, in); team.ReasonOf(err) != team.ReasonWorktreeDirty {
		t.Errorf("%v", err)
	}
	if d := cmp.Diff(want, contents(t, w.Path)); d != "" {
		t.Error("not put back", d)
	}
	in.Force, in.Team, in.Agent = true, "t", "a"
	res, err := f.repo.Remove(f.ctx(), w.Path, in)
	f.must(err)
	if f.exists(w.Path) || f.git(f.root, "show", res.RescueRef+":late.txt") != "late" {
		t.Errorf("%+v", res)
	}
}
