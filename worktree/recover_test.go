package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

// killGits kills every git below dir and its children.
func (f *fixture) killGits(dir string) {
	f.Helper()
	list, err := busy(f.ctx(), dir)
	f.must(err)
	gits := gitsAmong(f.ctx(), list)
	if len(gits) == 0 {
		f.Fatal("no git is at work")
	}
	for _, pid := range gits {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // each leads a process group
	}
	eventually(f.T, "git is dead", func() bool {
		list, err := busy(f.ctx(), dir)
		return err == nil && len(gitsAmong(f.ctx(), list)) == 0
	})
}

// A worker and its git are killed while git writes the files of a merge, once
// for a fast-forward and once for a true merge. The next worker finds the last
// commit and its untracked files, and can merge.
func TestRecoverMergeKilled(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"fast-forward", "true merge"} {
		t.Run(kind, func(t *testing.T) {
			f := newFixture(t)
			started, _ := f.slowCheckout()
			f.git(f.root, "config", "filter.slow.smudge", "cat")
			a, c := f.create("a"), f.create("c")
			f.write("wt/a/new/added.txt", "a")
			f.write("wt/a/a.txt", "changed in a\n")
			f.write("wt/a/sub/b.txt", "changed in a\n")
			f.commitAll(a.Path, "a")
			if kind == "true merge" {
				f.write("wt/c/c.txt", "c")
				f.commitAll(c.Path, "c")
			}
			f.write("wt/c/mine.txt", "untracked")
			before := f.state(c.Path)
			f.git(f.root, "config", "filter.slow.smudge", "echo >"+f.path("hello")+"; read x <"+f.path("bye")+"; cat")
			cmd := childCmd(t, childJob{Repo: f.root, Do: "merge", Path: c.Path, Merge: []string{"team/a"}})
			f.must(cmd.Start())
			started()
			f.must(cmd.Process.Kill())
			_ = cmd.Wait()
			f.killGits(c.Path)
			f.git(f.root, "config", "filter.slow.smudge", "cat")
			if _, err := f.repo.Merge(f.ctx(), c.Path, []string{"team/a"}, ""); err == nil {
				t.Fatal("the merge was not cut short")
			}
			notes, err := f.repo.Recover(f.ctx(), c.Path, "demo", "c")
			f.must(err)
			if d := cmp.Diff(before, f.state(c.Path)); d != "" {
				t.Errorf("%v\n%s", notes, d)
			}
			all := strings.Join(notes, "\n")
			ref := "refs/teamctl/rescue/demo/c/"
			if !strings.Contains(all, ref) || f.git(f.root, "for-each-ref", "--count=1", "--format=x", ref) != "x" {
				t.Errorf("no snapshot: %s", all)
			}
			if _, err := f.repo.Merge(f.ctx(), c.Path, []string{"team/a"}, ""); err != nil {
				t.Error(err)
			}
			if notes, err := f.repo.Recover(f.ctx(), c.Path, "demo", "c"); err != nil || len(notes) != 0 {
				t.Errorf("again: %v %v", notes, err)
			}
		})
	}
}

// A kill at one of teamctl's own steps, with no git running.
func TestRecoverSteps(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.create("a")
	f.write("wt/a/x.txt", "x")
	f.commitAll(a.Path, "a")
	for _, step := range []string{"merge-begun", "merged-one"} {
		c := f.create("c-" + step)
		f.write("wt/c-"+step+"/mine.txt", "untracked")
		killed(t, childJob{Repo: f.root, Do: "merge", Path: c.Path, Merge: []string{"team/a"}, KillAt: step})
		_, err := f.repo.Recover(f.ctx(), c.Path, "demo", "c")
		f.must(err)
		if _, err := f.repo.Merge(f.ctx(), c.Path, []string{"team/a"}, ""); err != nil {
			t.Error(step, err)
		}
		if got := contents(t, c.Path); got["mine.txt"] == "" || got["x.txt"] == "" {
			t.Errorf("%s: %v", step, got)
		}
	}
	// Work that was being committed is kept as it is.
	for _, step := range []string{"commit-begun", "added-all"} {
		c := f.create("w-" + step)
		f.write("wt/w-"+step+"/work.txt", "work")
		f.must(os.Remove(filepath.Join(c.Path, "a.txt")))
		killed(t, childJob{Repo: f.root, Do: "commit", Path: c.Path, KillAt: step})
		f.must(os.WriteFile(f.path("main/.git/worktrees/w-"+step+"/index.lock"), nil, 0o600))
		f.must(os.WriteFile(f.path("main/.git/refs/heads/team/w-"+step+".lock"), nil, 0o600))
		notes, err := f.repo.Recover(f.ctx(), c.Path, "demo", "w")
		f.must(err)
		if len(notes) != 2 {
			t.Errorf("%s: %v", step, notes)
		}
		_, files, changed, err := f.repo.Commit(f.ctx(), c.Path, CommitIn{Message: "work"})
		if err != nil || !changed || cmp.Diff([]string{"a.txt", "work.txt"}, files) != "" {
			t.Errorf("%s: %v %v %v", step, changed, files, err)
		}
	}
}

// An operation of the agent's own git was left over.
func TestRecoverLeftOver(t *testing.T) {
	t.Parallel()
	conflicting := func(f *fixture) Worktree {
		f.write("main/a.txt", "one\ntwo\n")
		f.commitMain("two lines")
		a, c := f.create("a"), f.create("c")
		f.write("wt/a/a.txt", "a\n")
		f.commitAll(a.Path, "a")
		f.write("wt/c/a.txt", "c\n")
		f.commitAll(c.Path, "c")
		f.write("wt/c/mine.txt", "untracked")
		return c
	}
	for name, leave := range map[string]func(f *fixture, c Worktree){
		"merge":       func(f *fixture, c Worktree) { _, _ = f.tryGit(c.Path, "merge", "team/a") },
		"rebase":      func(f *fixture, c Worktree) { _, _ = f.tryGit(c.Path, "rebase", "team/a") },
		"cherry-pick": func(f *fixture, c Worktree) { _, _ = f.tryGit(c.Path, "cherry-pick", "team/a") },
		"broken rebase": func(f *fixture, c Worktree) {
			_, _ = f.tryGit(c.Path, "rebase", "team/a")
			f.must(os.Remove(f.path("main/.git/worktrees/c/rebase-merge/orig-head")))
		},
		"locked merge": func(f *fixture, c Worktree) {
			_, _ = f.tryGit(c.Path, "merge", "team/a")
			f.must(os.WriteFile(f.path("main/.git/worktrees/c/index.lock"), nil, 0o600))
		},
		"checkout": func(f *fixture, c Worktree) { // killed between delete and write
			f.must(os.Remove(filepath.Join(c.Path, "a.txt")))
			f.must(os.WriteFile(f.path("main/.git/worktrees/c/index.lock"), nil, 0o600))
		},
	} {
		if testing.Short() && (name == "cherry-pick" || name == "locked merge") { // as rebase and checkout
			continue
		}
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c := conflicting(f)
			before := f.state(c.Path)
			leave(f, c)
			if cmp.Equal(before, f.state(c.Path)) {
				t.Fatal("nothing was left over")
			}
			notes, err := f.repo.Recover(f.ctx(), c.Path, "demo", "c")
			f.must(err)
			if d := cmp.Diff(before, f.state(c.Path)); d != "" {
				t.Errorf("%v\n%s", notes, d)
			}
			if b := f.git(c.Path, "symbolic-ref", "HEAD"); b != "refs/heads/team/c" {
				t.Error(b)
			}
			if f.git(f.root, "for-each-ref", "--format=x", "refs/teamctl/rescue/demo/c") != "x" {
				t.Errorf("no snapshot: %v", notes)
			}
			f.write("wt/c/mine.txt", "more")
			if _, _, _, err := f.repo.Commit(f.ctx(), c.Path, CommitIn{Message: "goes on"}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRecoverLeavesOrderAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.create("c")
	f.write("wt/c/a.txt", "in work\n")
	f.must(os.Remove(filepath.Join(c.Path, "sub/b.txt"))) // on purpose
	before := f.state(c.Path)
	notes, err := f.repo.Recover(f.ctx(), c.Path, "demo", "c")
	if err != nil || len(notes) > 0 || !cmp.Equal(before, f.state(c.Path)) {
		t.Errorf("%v %v", notes, err)
	}
	_, err = f.repo.Recover(f.ctx(), f.root, "demo", "c")
	wantErr(t, err, team.CodeDenied, team.ReasonMainWorktree)
}

// After a killed rebase by Refresh the branch has not moved.
func TestRecoverRefreshKilled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.create("c")
	f.write("wt/c/c.txt", "c")
	f.commitAll(c.Path, "c")
	f.write("main/a.txt", "by main\n")
	f.commitMain("goes on")
	before := f.state(c.Path)
	killed(t, childJob{Repo: f.root, Do: "refresh", Path: c.Path, Merge: []string{"main"}, KillAt: "refresh-begun"})
	if _, err := f.repo.Recover(f.ctx(), c.Path, "demo", "c"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, f.state(c.Path)); d != "" {
		t.Error(d)
	}
	if _, err := f.repo.Refresh(f.ctx(), c.Path, "main"); err != nil {
		t.Error(err)
	}
}

// A refresh that was killed after git's rebase has its new base after Recover, and after another
// Refresh: the commits of others do not count as the branch's own.
func TestRefreshKilledBeforeItsBase(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]func(f *fixture, path string) error{
		"recover": func(f *fixture, path string) error {
			_, err := f.repo.Recover(f.ctx(), path, "demo", "c")
			return err
		},
		"refresh": func(f *fixture, path string) error {
			_, err := f.repo.Refresh(f.ctx(), path, "main")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c := f.create("c")
			f.write("wt/c/c.txt", "c")
			f.commitAll(c.Path, "c")
			f.write("main/a.txt", "by main\n")
			f.commitMain("goes on")
			onto := f.git(f.root, "rev-parse", "main")
			killed(t, childJob{Repo: f.root, Do: "refresh", Path: c.Path, Merge: []string{"main"}, KillAt: "refresh-rebased"})
			if err := finish(f, c.Path); err != nil {
				t.Fatal(err)
			}
			st, err := f.repo.Status(f.ctx(), c.Path)
			if err != nil || st.Base != onto || st.Ahead != 1 {
				t.Errorf("base %s, %d ahead, not %s: %v", st.Base, st.Ahead, onto, err)
			}
			// A refresh onto an older commit does not take the base back.
			if _, err := f.repo.Refresh(f.ctx(), c.Path, c.Base); err != nil {
				t.Fatal(err)
			}
			if st, err := f.repo.Status(f.ctx(), c.Path); err != nil || st.Base != onto {
				t.Errorf("base %s after a refresh onto %s: %v", st.Base, c.Base, err)
			}
		})
	}
}

// What is undone in a worktree leaves its submodules alone, whatever the person has set.
func TestRecoverLeavesSubmodules(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git(f.dir, "init", "--quiet", "--initial-branch=main", f.path("lib"))
	f.write("lib/l", "l")
	f.commitAll(f.path("lib"), "lib")
	f.git(f.root, "submodule", "add", "--quiet", f.path("lib"), "lib")
	f.commitMain("submodule")
	f.git(f.root, "config", "submodule.recurse", "true")
	w := f.create("w")
	f.git(w.Path, "submodule", "update", "--init", "--quiet")
	f.write("wt/w/a.txt", "mine\n")
	f.git(w.Path, "commit", "--quiet", "-am", "mine")
	f.write("main/a.txt", "by main\n")
	f.commitMain("goes on")
	f.write("wt/w/lib/l", "precious")
	if out, err := f.tryGit(w.Path, "merge", "main"); err == nil {
		t.Fatalf("no conflict: %s", out)
	}
	notes, err := f.repo.Recover(f.ctx(), w.Path, "demo", "w")
	if err != nil || len(notes) == 0 {
		t.Fatalf("%q, %v", notes, err)
	}
	if got, err := os.ReadFile(filepath.Join(w.Path, "lib/l")); err != nil || string(got) != "precious" {
		t.Errorf("the submodule has %q, %v", got, err)
	}
}
