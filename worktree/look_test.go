package worktree

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

func TestLook(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, b, c := f.create("a"), f.create("b"), f.create("c")
	f.write("wt/a/a.txt", "by a\n")
	f.commitAll(a.Path, "a")
	f.write("wt/a/untracked.txt", "x")
	f.write("wt/b/new.txt", "b\n")
	f.commitAll(b.Path, "b1")
	f.write("wt/b/new.txt", "b2\n")
	f.commitAll(b.Path, "b2")
	f.write("main/a.txt", "main\n")
	f.commitMain("on main")
	views, err := f.repo.Look(f.ctx(), LookIn{Paths: []string{a.Path, b.Path, c.Path, f.path("wt/gone")}, Target: "main", Disk: true})
	f.must(err)
	type row struct {
		To, From, Unpushed, Untracked int
		Conflicts                     []string
	}
	var got []row
	for _, v := range views[:3] {
		if v.Err != nil || v.DiskBytes < 4096 || !v.Foreseen {
			t.Errorf("%+v", v)
		}
		got = append(got, row{v.ToTarget, v.FromTarget, v.Unpushed, v.Untracked, v.Conflicts})
	}
	want := []row{{1, 1, -1, 1, []string{"a.txt"}}, {2, 1, -1, 0, nil}, {0, 1, -1, 0, nil}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if team.ReasonOf(views[3].Err) != team.ReasonPathMissing || views[3].Problem == "" {
		t.Errorf("%+v", views[3])
	}
	f.git(f.root, "update-ref", "refs/remotes/origin/b", b.Branch+"~1")
	views, err = f.repo.Look(f.ctx(), LookIn{Paths: []string{b.Path}, Target: "main"})
	if err != nil || views[0].Unpushed != 1 {
		t.Errorf("%v %+v", err, views)
	}
	_, err = f.repo.Look(f.ctx(), LookIn{Paths: []string{b.Path}, Target: "nowhere"})
	wantErr(t, err, team.CodeNotFound, team.ReasonUnknownRev)
}

// A git that cannot foresee conflicts leaves them open where a merge has two sides.
func TestLookWithoutMergeTree(t *testing.T) {
	f := newFixture(t)
	same, apart := f.create("same"), f.create("apart")
	f.write("wt/apart/new.txt", "new\n")
	f.commitAll(apart.Path, "new")
	f.write("main/a.txt", "main\n")
	f.commitMain("on main")
	real, err := exec.LookPath("git")
	f.must(err)
	f.write("bin/git", fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *' merge-tree '*) echo 'usage: git merge-tree' >&2; exit 129;; esac\nexec %s \"$@\"\n", real))
	f.must(os.Chmod(f.path("bin/git"), 0o755))
	t.Setenv("PATH", f.path("bin")+":"+os.Getenv("PATH"))
	views, err := f.repo.Look(f.ctx(), LookIn{Paths: []string{same.Path, apart.Path}, Target: "main"})
	f.must(err)
	if a, b := views[0], views[1]; a.Err != nil || !a.Foreseen || b.Err != nil || b.Foreseen || b.ToTarget != 1 || b.FromTarget != 1 {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// A tag with the name of the branch is not taken for it, as git does.
func TestLookBesideATag(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git(f.root, "tag", "main")
	f.write("main/a.txt", "main\n")
	f.commitMain("on main")
	a := f.create("a")
	f.git(f.root, "tag", a.Branch, "HEAD~1")
	if into, err := f.repo.MainBranch(f.ctx()); err != nil || into != "main" {
		t.Errorf("MainBranch is %q, %v", into, err)
	}
	views, err := f.repo.Look(f.ctx(), LookIn{Paths: []string{a.Path}, Target: "main"})
	if err != nil || views[0].ToTarget != 0 || views[0].FromTarget != 0 {
		t.Errorf("%v %+v", err, views)
	}
	f.write("wt/a/new.txt", "a\n")
	f.commitAll(a.Path, "new")
	if p, err := f.repo.PullText(f.ctx(), a.Branch, "main"); err != nil || len(p.Subjects) != 1 {
		t.Errorf("%v %+v", err, p)
	}
}

func TestStatusAll(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var paths []string
	for i := range 7 {
		w := f.create(fmt.Sprint("w", i))
		f.write(fmt.Sprintf("wt/w%d/n%d", i, i), "x")
		paths = append(paths, w.Path)
	}
	list, errs := f.repo.StatusAll(f.ctx(), append(paths, f.path("none")))
	for i, st := range list[:7] {
		if errs[i] != nil || len(st.Changes) != 1 || st.Changes[0].Path != fmt.Sprint("n", i) {
			t.Errorf("%d: %v %+v", i, errs[i], st)
		}
	}
	wantErr(t, errs[7], team.CodeNotFound, team.ReasonPathMissing)
}

// What a member merged from another member is not its own change.
func TestTouchedAndBothChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, b := f.create("a"), f.create("b")
	f.write("wt/a/a.txt", "by a\n")
	f.commitAll(a.Path, "a")
	headA := f.head(a.Path)
	f.git(b.Path, "merge", "--quiet", headA)
	f.write("wt/b/b-only.txt", "b\n")
	f.commitAll(b.Path, "b")
	headB := f.head(b.Path)
	f.write("wt/b/sub/b.txt", "dirty\n")
	got, err := f.repo.Touched(f.ctx(), b.Path)
	if d := cmp.Diff(Touched{headB, []string{"a.txt", "b-only.txt"}, []string{"sub/b.txt"}}, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	// What counts for one side is what both have changed if the other's files are dirty.
	both := func(a, b string, wantA, wantB, want []string) {
		t.Helper()
		var files [3][]Both
		for _, p := range []string{"a.txt", "b-only.txt", "none.txt", "other.txt", "same.txt", "sub/b.txt"} {
			files[0] = append(files[0], Both{p, false, true})
			files[1] = append(files[1], Both{p, true, false})
			files[2] = append(files[2], Both{p, false, false})
		}
		for i, want := range [][]string{wantA, wantB, want} {
			got, err := f.repo.BothChanged(f.ctx(), a, b, files[i])
			if err != nil || !cmp.Equal(got, want) {
				t.Errorf("%v of %s and %s: %q, want %q: %v", files[i][0], a, b, got, want, err)
			}
		}
	}
	both(headA, headB, nil, []string{"b-only.txt"}, nil)
	both(headB, headA, []string{"b-only.txt"}, nil, nil)
	// Both create the same files, one identical and one different.
	f.write("wt/a/same.txt", "same\n")
	f.write("wt/b/same.txt", "same\n")
	f.write("wt/a/other.txt", "by a\n")
	f.write("wt/b/other.txt", "by b\n")
	f.commitAll(a.Path, "a again")
	f.commitAll(b.Path, "b again")
	both("team/a", "team/b", []string{"other.txt"}, []string{"b-only.txt", "other.txt", "sub/b.txt"}, []string{"other.txt"})
	text, untracked, err := f.repo.Diff(f.ctx(), b.Path, true)
	if err != nil || len(untracked) != 0 || text == "" {
		t.Errorf("%v %q %q", err, text, untracked)
	}
}
