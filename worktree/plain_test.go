package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// What is found without git is what git finds; where git may find something
// else, git is asked.
func TestPlainRepository(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	linked := f.create("w")
	f.git(f.dir, "init", "--quiet", "--bare", f.path("bare"))
	f.git(f.dir, "init", "--quiet", f.path("unborn"))
	f.git(f.dir, "init", "--quiet", "--separate-git-dir", f.path("apart.git"), f.path("apart"))
	f.git(f.root, "clone", "--quiet", "--bare", f.root, f.path("hub/.git"))
	f.git(f.path("hub"), "worktree", "add", "--quiet", f.path("hub/tree"))
	f.git(f.root, "worktree", "add", "--quiet", "--detach", f.path("wt/detached"))
	f.git(f.dir, "clone", "--quiet", f.root, f.path("super"))
	f.git(f.path("super"), "submodule", "--quiet", "add", f.root, "inside")
	f.must(os.Mkdir(f.path("byLink"), 0o755))
	f.must(os.Symlink(f.path("main/.git"), f.path("byLink/.git")))
	f.write("copied/.git", "gitdir: "+f.path("main/.git/worktrees/w")+"\n")
	look := func(dir string, plain bool) {
		t.Helper()
		var files, git Repo
		if files.plain(dir) != plain {
			t.Errorf("%s: plain %v", dir, !plain)
		}
		if err := git.ask(f.ctx(), dir); plain && (err != nil || files.root != git.root || files.common != git.common || files.bare != git.bare) {
			t.Errorf("%s: found %s %s %v, git finds %s %s %v %v", dir, files.root, files.common, files.bare, git.root, git.common, git.bare, err)
		}
	}
	for rel, plain := range map[string]bool{
		"main": true, "wt/w": true, "wt/detached": true, "unborn": true, "super": true, "copied": true,
		"main/sub": false, "main/.git": false, "bare": false, "apart": false, "hub": false, "hub/tree": false, "super/inside": false, "byLink": false, ".": false,
	} {
		look(f.path(rel), plain)
	}

	config, err := os.ReadFile(f.path("main/.git/config"))
	f.must(err)
	for _, c := range []struct {
		old, new string
		plain    bool
	}{
		{"", "[remote \"origin\"]\n\turl = /x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n# a comment\n", true},
		{"", "[branch \"x\"]\n\tremote = origin\n", true},
		{"bare = false", "bare = true", false},
		{"bare = false", "bare", false},
		{"\tbare = false\n", "", false},
		{"", "[core]\n\tbare = true\n", false},
		{"", "[core] bare = true\n", false},
		{"", "[CORE]\n\tBare=true\n", false},
		{"", "\tworktree = ../../unborn\n", false},
		{"", "[extensions]\n\tworktreeConfig = true\n", false},
		{"", "[include]\n\tpath = other\n", false},
		{"repositoryformatversion = 0", "repositoryformatversion = 1", false},
		{"", "[core]\n\trepositoryFormatVersion = 99\n", false},
		{"\tbare = false\n", "\tx = y \\\n\tbare = false\n", false},
		{"", "[alias\n", false},
		{"", "= x\n", false},
	} {
		text := strings.Replace(string(config), c.old, c.new, 1)
		if c.old == "" {
			text = string(config) + c.new
		}
		f.write("main/.git/config", text)
		look(f.root, c.plain)
		look(linked.Path, c.plain)
	}
	f.write("main/.git/config", string(config))

	for _, rel := range []string{"HEAD", "objects", "refs", "config"} {
		p := filepath.Join(f.path("unborn/.git"), rel)
		f.must(os.Rename(p, p+".gone"))
		look(f.path("unborn"), false)
		f.must(os.Rename(p+".gone", p))
	}
	f.write("unborn/.git/HEAD", "ref: refs/heads/.invalid\n")
	look(f.path("unborn"), false)
	if os.Geteuid() == 0 {
		f.must(os.Chown(f.path("super/.git"), 1, 1))
		look(f.path("super"), false)
	}
}

// The branch at HEAD is the one that git reports.
func TestBranchFromFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	tr, err := f.repo.tree(w.Path)
	f.must(err)
	head := f.git(w.Path, "rev-parse", "HEAD")
	for _, c := range []struct {
		do     string
		branch string
		known  bool
	}{
		{"switch -c a/b", "a/b", true},
		{"pack-refs --all", "a/b", true},
		{"symbolic-ref refs/heads/link refs/heads/a/b", "a/b", true},
		{"symbolic-ref HEAD refs/heads/link", "a/b", false},
		{"symbolic-ref HEAD refs/heads/unborn", "unborn", true},
		{"symbolic-ref HEAD refs/remotes/x", "refs/remotes/x", false},
		{"switch --detach " + head, "", true},
	} {
		f.git(w.Path, strings.Fields(c.do)...)
		if _, _, known := tr.headRef(); known != c.known {
			t.Errorf("%s: known %v", c.do, known)
		}
		want, _ := f.tryGit(w.Path, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
		if got, err := f.repo.HeadOf(f.ctx(), w.Path); err != nil || got != want {
			t.Errorf("%s: HEAD is %q %v, want %q", c.do, got, err, want)
		}
		if got, err := tr.branch(f.ctx()); err != nil || got != c.branch {
			t.Errorf("%s: %q %v, want %q", c.do, got, err, c.branch)
		}
	}
}

// What a removal and a checkpoint have found is not asked for again.
func TestFewGits(t *testing.T) {
	f := newFixture(t)
	w := f.create("w")
	gits := f.countGits()
	_, _, err := OpenWorktree(f.ctx(), w.Path)
	f.must(err)
	if n := gits(); n != 0 {
		t.Errorf("opening a worktree starts git %d times", n)
	}
	_, _, err = f.repo.Checkpoint(f.ctx(), w.Path, "demo", "w", "a test")
	f.must(err)
	if n := gits(); n > 2 { // status, the ref
		t.Errorf("a checkpoint of a clean worktree starts git %d times", n)
	}
	_, err = f.repo.Remove(f.ctx(), w.Path, RemoveIn{DeleteBranch: true})
	f.must(err)
	// Twice the status with the ignored files; the end of the branch.
	if n := gits(); n > 3 {
		t.Errorf("a removal starts git %d times", n)
	}

	w = f.create("w")
	f.write("wt/w/b.txt", "b")
	f.commitAll(w.Path, "b")
	f.git(f.root, "merge", "--quiet", "--no-ff", "--message=m", w.Branch)
	f.must(f.repo.CheckRemove(f.ctx(), []string{w.Path}, RemoveIn{})[0])
	gits()
	res, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{DeleteBranch: true, Checked: true})
	// The last inspection; the search for the branch's commits in others, and its end.
	if n := gits(); err != nil || !res.BranchDeleted || n > 3 {
		t.Errorf("a removal after a check starts git %d times: %+v %v", n, res, err)
	}

	w = f.create("w")
	f.write("wt/w/c.txt", "c")
	f.write("main/d.txt", "d")
	f.commitAll(w.Path, "c")
	f.commitAll(f.root, "d")
	gits()
	for _, c := range []struct {
		what  string
		file  Both
		found bool
		gits  int
	}{
		{"dirty on both sides", Both{"x.txt", true, true}, true, 0},
		{"changed by neither", Both{"x.txt", false, false}, false, 1},
		{"changed by one", Both{"d.txt", false, false}, false, 2},
		{"dirty and committed", Both{"d.txt", true, false}, true, 2},
	} {
		both, err := f.repo.BothChanged(f.ctx(), w.Branch, "main", []Both{c.file})
		if n := gits(); err != nil || len(both) == 1 != c.found || n != c.gits {
			t.Errorf("a file %s: %q %v with %d gits, want %d", c.what, both, err, n, c.gits)
		}
	}
	_, err = f.repo.Dirs(f.ctx(), w.Path, 1)
	if n := gits(); err != nil || n != 0 {
		t.Errorf("the directories of a worktree: %v with %d gits", err, n)
	}

	same := f.create("same")
	gits()
	look := func(path string) {
		t.Helper()
		views, err := f.repo.Look(f.ctx(), LookIn{Paths: []string{path}, Target: "main"})
		if err != nil || views[0].Err != nil || !views[0].Foreseen || views[0].Unpushed != -1 {
			t.Errorf("%v %+v", err, views)
		}
	}
	look(same.Path)
	if n := gits(); n != 1 { // status
		t.Errorf("a look at a worktree at the target starts git %d times", n)
	}
	look(w.Path)
	if n := gits(); n != 4 { // status, the merge base, the commits, the merge
		t.Errorf("a look at a worktree beside the target starts git %d times", n)
	}
}

// The worktrees that the files show are those that git lists.
func TestHeadsFromFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	f.create("other")
	for _, c := range []struct {
		do    string
		known bool
	}{
		{"switch -c a/b", true},
		{"pack-refs --all", true},
		{"symbolic-ref HEAD refs/heads/unborn", true},
		{"symbolic-ref HEAD refs/remotes/x", false},
		{"switch --discard-changes --detach main", true},
	} {
		f.git(w.Path, strings.Fields(c.do)...)
		got, known := f.repo.plainHeads()
		if known != c.known {
			t.Errorf("%s: known %v", c.do, known)
		}
		if known {
			sameHeads(f, c.do, got)
		}
	}
	f.must(os.RemoveAll(w.Path))
	got, _ := f.repo.plainHeads()
	sameHeads(f, "removed", got)
	at := f.path("main/.git/worktrees/w/gitdir")
	whole, err := os.ReadFile(at)
	f.must(err)
	f.must(os.WriteFile(at, nil, 0o600))
	if got, known := f.repo.plainHeads(); known {
		t.Errorf("a damaged registration: %+v", got)
	}
	f.must(os.WriteFile(at, whole, 0o600))
	f.git(f.root, "worktree", "prune")
}

func sameHeads(f *fixture, when string, got []Registered) {
	f.Helper()
	want, err := f.repo.List(f.ctx())
	f.must(err)
	for i := range want {
		want[i].Detached = false
	}
	byPath := cmpopts.SortSlices(func(a, b Registered) bool { return a.Path < b.Path })
	if d := cmp.Diff(want, got, byPath); d != "" {
		f.Errorf("%s: (-git +files)\n%s", when, d)
	}
}
