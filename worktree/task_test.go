package worktree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

// What a worker does for a task starts as many gits as it needs answers.
func TestGitsOfATask(t *testing.T) {
	f := newFixture(t)
	w := f.create("w")
	gits := f.countGits()
	starts := func(what string, want int) {
		t.Helper()
		if n := gits(); n != want {
			t.Errorf("%s starts git %d times, want %d", what, n, want)
		}
	}
	commit := func(wantChanged bool) string {
		t.Helper()
		sha, _, changed, err := f.repo.Commit(f.ctx(), w.Path, CommitIn{Message: "m", AuthorName: "w", AuthorEmail: "w@demo"})
		f.must(err)
		if changed != wantChanged {
			t.Errorf("changed: %v", changed)
		}
		return sha
	}
	var noted Touched
	save := func() {
		t.Helper()
		_, _, err := f.repo.CheckpointNoting(f.ctx(), w.Path, "demo", "w", "a test", func(w Touched) error { noted = w; return nil })
		f.must(err)
	}
	commit(false)
	starts("a commit of nothing", 1) // status
	f.write("wt/w/new.txt", "new")
	sha := commit(true)
	starts("a commit", 4) // status, add, commit, the files
	save()
	starts("a checkpoint that notes the files", 3) // status, the files, the ref
	if d := cmp.Diff(Touched{Head: sha, Committed: []string{"new.txt"}}, noted); d != "" {
		t.Error(d)
	}
	save()
	starts("a checkpoint of the same", 1) // status
	merge := func(commits ...string) (MergeResult, error) {
		return f.repo.MergeSaving(f.ctx(), w.Path, commits, "m", "demo", "w")
	}
	res, err := merge(sha)
	if d := cmp.Diff(MergeResult{Before: sha, Head: sha, Contained: []string{sha}}, res); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	starts("a merge of what is there", 1) // the missing commits
	f.write("main/more.txt", "more")
	f.commitMain("more")
	more := f.head(f.root)
	gits()
	res, err = merge(sha, more)
	if err != nil || !slices.Equal(res.Merged, []string{more}) || !slices.Equal(res.Contained, []string{sha}) {
		t.Errorf("%v %+v", err, res)
	}
	// The missing commits, is the other one there, status, identity, merge.
	starts("a merge after a checkpoint", 5)
	var older strings.Builder
	for i := range checkpointsKept {
		fmt.Fprintf(&older, "create %sdemo/w/%s %s\n", checkpointRoot, time.Unix(int64(i), 0).UTC().Format(refTime), sha)
	}
	f.feed(older.String(), "update-ref", "--stdin")
	f.write("wt/w/new.txt", "newer")
	commit(true)
	gits()
	save()
	starts("a checkpoint that drops the oldest", 4) // status, the files, the ref, the oldest
}

// A change during a checkpoint is in what it notes, or in the next one.
func TestChangedDuringACheckpoint(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	var noted []Touched
	during := func() {}
	save := func(wantFresh bool) {
		t.Helper()
		noted = nil
		_, fresh, err := f.repo.CheckpointNoting(f.ctx(), w.Path, "demo", "w", "a test", func(w Touched) error {
			noted = append(noted, w)
			during()
			during = func() {}
			return nil
		})
		f.must(err)
		if fresh != wantFresh || len(noted) > 1 || fresh != (len(noted) == 1) {
			t.Fatalf("fresh %v, want %v, noted %+v", fresh, wantFresh, noted)
		}
	}
	// A clean worktree, changed right after the look.
	during = func() { f.write("wt/w/one.txt", "1"); f.age("wt/w/one.txt") }
	save(true)
	if len(noted[0].Dirty) != 0 {
		t.Errorf("noted before it was there: %+v", noted)
	}
	save(true)
	if !slices.Equal(noted[0].Dirty, []string{"one.txt"}) {
		t.Errorf("a change right after the look: %+v", noted)
	}
	save(false)
	// One with work in it, changed while that is saved.
	f.write("wt/w/two.txt", "2")
	f.repo.step = func(name string) {
		if name == "checkpointed" {
			f.write("wt/w/three.txt", "3")
		}
	}
	save(true)
	if !slices.Equal(noted[0].Dirty, []string{"one.txt", "three.txt", "two.txt"}) {
		t.Errorf("a change while it was saved: %+v", noted)
	}
}

// An error of the note does not keep the checkpoint from being taken.
func TestCheckpointNotNoted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	full := team.Errorf(team.CodeUnavailable, "no space left on device")
	ref, fresh, err := f.repo.CheckpointNoting(f.ctx(), w.Path, "demo", "w", "a test", func(Touched) error { return full })
	if !fresh || !errors.Is(err, full) || f.git(f.root, "rev-parse", ref) != w.Base {
		t.Errorf("%s, fresh %v: %v", ref, fresh, err)
	}
}

// A branch that was set back behind its base has changed nothing, and one without common history
// everything in which it differs.
func TestTouchedElsewhere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("main/second.txt", "2")
	f.commitMain("second")
	w := f.create("w")
	for _, c := range []struct {
		to   string
		want []string
	}{
		{"HEAD~1", nil},
		{f.git(f.root, "commit-tree", "HEAD~1^{tree}", "-m", "of its own"), []string{"second.txt"}},
	} {
		f.git(w.Path, "reset", "--quiet", "--hard", c.to)
		got, err := f.repo.Touched(f.ctx(), w.Path)
		if d := cmp.Diff(Touched{Head: f.head(w.Path), Committed: c.want}, got); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", c.to, err, d)
		}
	}
}

// What is merged already is no reason to save the worktree; anything else is.
func TestMergeSaving(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.member("a", map[string]string{"a2.txt": "a"})
	w := f.create("w")
	f.write("wt/w/a.txt", "changed, not committed")
	saved := func(want int) {
		t.Helper()
		list, err := f.repo.Saves(f.ctx(), KindCheckpoint, "demo", "w")
		if err != nil || len(list) != want {
			t.Errorf("%d checkpoints, want %d: %v", len(list), want, err)
		}
	}
	merge := func(commits ...string) (MergeResult, error) {
		return f.repo.MergeSaving(f.ctx(), w.Path, commits, "m", "demo", "w")
	}
	_, err := merge(w.Base)
	f.must(err)
	saved(0)
	_, err = merge(w.Base, f.head(a.Path))
	wantErr(t, err, team.CodeConflict, team.ReasonWorktreeDirty)
	saved(1)
	_, err = merge(strings.Repeat("1", 40))
	wantErr(t, err, team.CodeNotFound, team.ReasonUnknownRev)

	// A tag is not among the commits that it leads to.
	f.git(w.Path, "checkout", "--quiet", "--", "a.txt")
	b := f.member("b", map[string]string{"b2.txt": "b"})
	f.git(f.root, "tag", "-a", "-m", "t", "annotated", b.Branch)
	tag := f.git(f.root, "rev-parse", "annotated")
	res, err := merge(tag, f.head(a.Path))
	if err != nil || !slices.Equal(res.Merged, []string{f.head(b.Path), f.head(a.Path)}) {
		t.Errorf("%v %+v", err, res)
	}
	saved(2)
	if res, err = merge(tag); err != nil || len(res.Merged) != 0 {
		t.Errorf("%v %+v", err, res)
	}
}

// Whether there is a ref is what git answers.
func TestAnyRefBelow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const dir = "refs/remotes"
	head := f.head(f.root)
	common := f.path("main/.git")
	for _, c := range []struct {
		do    func()
		known bool
	}{
		{func() {}, true},
		{func() { f.git(f.root, "symbolic-ref", dir+"/origin/HEAD", dir+"/origin/main") }, false},
		{func() { f.git(f.root, "update-ref", dir+"/origin/main", head) }, true},
		{func() { f.git(f.root, "pack-refs", "--all") }, true},
		{func() { f.write("main/.git/"+dir+"/origin/main", "damaged") }, false},
		{func() { f.must(os.RemoveAll(filepath.Join(common, dir))) }, true},
		{func() { f.git(f.root, "update-ref", "-d", dir+"/origin/main") }, true},
		{func() { f.git(f.root, "update-ref", "refs/remotesx/main", head); f.git(f.root, "pack-refs", "--all") }, true},
		{func() { f.must(os.Mkdir(filepath.Join(common, "reftable"), 0o700)) }, false},
	} {
		c.do()
		some, known := anyRefBelow(common, dir)
		if known != c.known {
			t.Errorf("known %v, want %v", known, c.known)
		}
		if !known {
			continue
		}
		if git := f.git(f.root, "for-each-ref", dir+"/") != ""; some != git {
			t.Errorf("some %v, git %v", some, git)
		}
	}
	f.must(os.Remove(filepath.Join(common, "reftable")))
}

// Refs that the files show are those that git lists; what the files do not show is left to git.
func TestRefsBelow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const dir = "refs/teamctl/checkpoint/demo/w"
	head := f.head(f.root)
	tree := f.git(f.root, "rev-parse", "HEAD^{tree}")
	other := f.git(f.root, "commit-tree", tree, "-m", "other")
	for _, c := range []struct {
		do    func()
		known bool
	}{
		{func() {}, true},
		{func() {
			f.feed("create "+dir+"/1 "+head+"\ncreate "+dir+"/2 "+head+"\ncreate "+dir+"x/3 "+head+"\n", "update-ref", "--stdin")
		}, true},
		{func() { f.git(f.root, "pack-refs", "--all") }, true},
		{func() { f.git(f.root, "update-ref", dir+"/2", other); f.git(f.root, "update-ref", dir+"/4", other) }, true},
		{func() { f.write("main/.git/"+dir+"/5.lock", "") }, true},
		{func() { f.git(f.root, "update-ref", dir+"/sub/6", head) }, false},
		{func() { f.git(f.root, "pack-refs", "--all") }, false},
		{func() { f.git(f.root, "update-ref", "-d", dir+"/sub/6") }, true},
		{func() { f.git(f.root, "symbolic-ref", dir+"/7", dir+"/1") }, false},
		{func() { f.must(os.Remove(f.path("main/.git/" + dir + "/7"))) }, true},
		{func() { f.must(os.Mkdir(f.path("main/.git/reftable"), 0o700)) }, false},
	} {
		c.do()
		got, known := refsBelow(filepath.Join(f.root, ".git"), dir)
		if known != c.known {
			t.Errorf("known %v, want %v: %v", known, c.known, got)
		}
		if !known {
			continue
		}
		want := map[string]string{}
		for _, l := range lines([]byte(f.git(f.root, "for-each-ref", "--format=%(refname) %(objectname)", dir)), '\n') {
			ref, sha, _ := strings.Cut(l, " ")
			want[ref] = sha
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-git +files)\n%s", d)
		}
	}
	f.must(os.Remove(f.path("main/.git/reftable")))
	f.must(os.Remove(f.path("main/.git/" + dir + "/5.lock")))
}
