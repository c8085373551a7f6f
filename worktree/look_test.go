package worktree

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
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

// What is read of a diff has one form, whatever the person's configuration makes of their own, and
// runs none of the programs that it names.
func TestDiffForm(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("main/.gitattributes", "*.bin diff=odd\n")
	f.write("main/sub/x.bin", "one\n")
	f.git(f.root, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",mod")
	f.must(os.Mkdir(f.path("main/mod"), 0o755))
	f.commitMain("a submodule")
	w := f.create("w")
	f.write("wt/w/sub/b.txt", "b\nof w\n")
	f.git(w.Path, "mv", "a.txt", "z.txt")
	f.write("wt/w/sub/x.bin", "two\n")
	f.git(w.Path, "update-index", "--cacheinfo", "160000,"+strings.Repeat("2", 40)+",mod")
	f.must(os.MkdirAll(f.path("wt/w/mod"), 0o755))
	f.git(w.Path, "commit", "--quiet", "--all", "-m", "work")
	f.write("wt/w/sub/b.txt", "b\nof w\nagain\n")
	from := f.git(w.Path, "rev-parse", "HEAD~")
	f.write("order", "sub/*\n")
	ran := f.path("ran")
	program := f.path("program")
	f.write("program", "#!/bin/sh\ntouch '"+ran+"'\ncat \"$1\"\n")
	f.must(os.Chmod(program, 0o755))
	saved := team.SavedWork{Ref: "refs/teamctl/x", Head: from, Commit: f.head(w.Path)}
	diffs := func() (texts []string) {
		t.Helper()
		text, _, err := f.repo.Diff(f.ctx(), w.Path, false)
		f.must(err)
		texts = append(texts, text)
		text, err = f.repo.DiffTo(f.ctx(), w.Path, from, "HEAD", false)
		f.must(err)
		texts = append(texts, text)
		for _, patch := range []bool{false, true} {
			text, err = f.repo.SavedChanges(f.ctx(), saved, patch)
			f.must(err)
			texts = append(texts, text)
		}
		p, err := f.repo.PullText(f.ctx(), w.Branch, "main")
		f.must(err)
		return append(texts, p.Stat)
	}
	want := diffs()
	if !strings.Contains(want[0], "+++ b/sub/b.txt\n") || !strings.Contains(want[0], "rename from a.txt\n") || !strings.Contains(want[0], "+Subproject commit 2222") {
		t.Fatalf("%q", want)
	}
	var headings []string
	for _, text := range want {
		headings = append(headings, headingsOf(text)...)
	}
	for _, c := range []struct {
		settings []string // key=value
		order    bool     // changes the order of the files
		lines    bool     // changes which lines and renames are shown
	}{
		{settings: []string{"diff.mnemonicPrefix=true"}},
		{settings: []string{"diff.noprefix=true"}},
		{settings: []string{"diff.srcPrefix=old/", "diff.dstPrefix=new/"}},
		{settings: []string{"diff.external=" + program}},
		{settings: []string{"diff.odd.command=" + program}},
		{settings: []string{"diff.odd.textconv=" + program}},
		{settings: []string{"diff.submodule=log"}},
		{settings: []string{"diff.submodule=diff"}},
		{settings: []string{"color.ui=always", "color.diff=always", "diff.colorMoved=zebra"}},
		{settings: []string{"diff.wordRegex=."}},
		{settings: []string{"diff.orderFile=" + f.path("order")}, order: true},
		{settings: []string{"diff.renames=false"}, lines: true},
		{settings: []string{"diff.context=0", "diff.interHunkContext=9"}, lines: true},
	} {
		for _, s := range c.settings {
			key, value, _ := strings.Cut(s, "=")
			f.git(f.root, "config", key, value)
		}
		got := diffs()
		switch {
		case c.lines:
			for _, text := range got {
				for _, h := range headingsOf(text) {
					if !slices.Contains(headings, h) && !strings.HasPrefix(h, "diff --git a/a.txt b/a.txt") && !strings.HasPrefix(h, "diff --git a/z.txt b/z.txt") {
						t.Errorf("with %s: %q", c.settings, h)
					}
				}
			}
		case c.order:
			for i := range got {
				if d := cmp.Diff(slices.Sorted(strings.Lines(want[i])), slices.Sorted(strings.Lines(got[i]))); d != "" {
					t.Errorf("with %s: %s", c.settings, d)
				}
			}
		default:
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("with %s: %s", c.settings, d)
			}
		}
		if f.exists(ran) {
			t.Errorf("with %s: the program ran", c.settings)
			f.must(os.Remove(ran))
		}
		for _, s := range c.settings {
			key, _, _ := strings.Cut(s, "=")
			f.git(f.root, "config", "--unset", key)
		}
	}
}

// headingsOf returns the lines of a diff that begin a file.
func headingsOf(text string) (list []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "diff --git ") {
			list = append(list, line)
		}
	}
	return list
}
