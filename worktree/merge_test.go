package worktree

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

// A task that depends on two others gets the commits of both.
func TestMergeDependent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git(f.root, "config", "merge.ff", "false")
	a, b, c := f.create("a"), f.create("b"), f.create("c")
	f.write("wt/a/from-a.txt", "a")
	shaA, _, _, err := f.repo.Commit(f.ctx(), a.Path, CommitIn{Message: "a"})
	f.must(err)
	f.write("wt/b/from-b.txt", "b")
	shaB, _, _, err := f.repo.Commit(f.ctx(), b.Path, CommitIn{Message: "b"})
	f.must(err)
	f.write("wt/c/untracked.txt", "stays")
	res, err := f.repo.Merge(f.ctx(), c.Path, []string{shaA, shaB, c.Base, "team/a"}, "bring in a and b")
	f.must(err)
	want := MergeResult{Before: c.Base, Head: f.git(c.Path, "rev-parse", "HEAD"), Merged: []string{shaA, shaB}, Contained: []string{c.Base, shaA}}
	if d := cmp.Diff(want, res); d != "" {
		t.Error(d)
	}
	got := contents(t, c.Path)
	for _, name := range []string{"from-a.txt", "from-b.txt", "untracked.txt"} {
		if got[name] == "" {
			t.Errorf("%s is not there", name)
		}
	}
	if s := f.git(c.Path, "log", "--format=%s", "-1"); s != "bring in a and b" {
		t.Error(s)
	}
	// The first merge was a fast-forward.
	if p := f.git(c.Path, "rev-list", "--merges", "--count", "HEAD"); p != "1" {
		t.Errorf("%s merge commits", p)
	}
}

func TestMergeConflict(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git(f.root, "config", "merge.autoStash", "true")
	f.git(f.root, "config", "rerere.enabled", "true")
	a, b, c := f.create("a"), f.create("b"), f.create("c")
	f.write("wt/a/from-a.txt", "a")
	f.commitAll(a.Path, "a")
	f.write("wt/b/a.txt", "b\n")
	f.write("wt/b/sub/b.txt", "b\nb\n")
	f.commitAll(b.Path, "b")
	f.write("wt/c/a.txt", "c\n")
	f.write("wt/c/sub/b.txt", "c\nc\n")
	f.commitAll(c.Path, "c")
	f.write("wt/c/untracked.txt", "stays")
	before, head := contents(t, c.Path), f.git(c.Path, "rev-parse", "HEAD")
	res, err := f.repo.Merge(f.ctx(), c.Path, []string{"team/a", "team/b"}, "m")
	wantErr(t, err, team.CodeConflict, team.ReasonMergeConflict)
	if d := cmp.Diff([]string{"a.txt", "sub/b.txt"}, res.Conflicts); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(before, contents(t, c.Path)); d != "" || f.git(c.Path, "rev-parse", "HEAD") != head || res.Head != head || res.Merged != nil {
		t.Errorf("the worktree changed: %s %+v", d, res)
	}
	if st, err := f.repo.Status(f.ctx(), c.Path); err != nil || st.Operation != "" || st.Staged+st.Unstaged != 0 || st.Branch != "team/c" {
		t.Errorf("%v %+v", err, st)
	}
}

func TestMergeRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, c := f.create("a"), f.create("c")
	f.write("wt/a/new.txt", "a")
	f.commitAll(a.Path, "a")
	merge := func(path, commit string) error {
		_, err := f.repo.Merge(f.ctx(), path, []string{commit}, "")
		return err
	}
	wantErr(t, merge(f.root, "team/a"), team.CodeDenied, team.ReasonMainWorktree)
	wantErr(t, merge(c.Path, "nope"), team.CodeNotFound, team.ReasonUnknownRev)
	f.write("wt/c/new.txt", "untracked, and would be overwritten")
	wantErr(t, merge(c.Path, "team/a"), team.CodeConflict, team.ReasonMergeRefused)
	if got := contents(t, c.Path)["new.txt"]; got != "---------- untracked, and would be overwritten" {
		t.Error(got)
	}
	f.write("wt/c/a.txt", "changed")
	wantErr(t, merge(c.Path, "team/a"), team.CodeConflict, team.ReasonWorktreeDirty)
	// Unrelated history is refused.
	f.commitAll(c.Path, "clean")
	f.git(f.root, "branch", "alien", f.git(f.root, "commit-tree", "-m", "alien", "HEAD^{tree}"))
	wantErr(t, merge(c.Path, "alien"), team.CodeConflict, team.ReasonMergeRefused)
	if st, err := f.repo.Status(f.ctx(), c.Path); err != nil || !st.Clean() {
		t.Errorf("%v %+v", err, st)
	}
}

// ctx ends while git merges: the worktree is unchanged.
func TestMergeGivenUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, c := f.create("a"), f.create("c")
	f.write("wt/a/x.txt", "a")
	f.commitAll(a.Path, "a")
	f.write("wt/a/a.txt", "changed in a\n")
	f.commitAll(a.Path, "a2")
	started, _ := f.slowCheckout()
	f.write("wt/c/.gitattributes", "a.txt filter=slow\n")
	f.write("wt/c/c.txt", "c")
	f.commitAll(c.Path, "c")
	before := contents(t, c.Path)
	ctx, cancel := context.WithCancel(f.ctx())
	done := make(chan error, 1)
	go func() {
		_, err := f.repo.Merge(ctx, c.Path, []string{"team/a"}, "")
		done <- err
	}()
	started()
	f.git(f.root, "config", "filter.slow.smudge", "cat") // for the restore
	cancel()
	wantErr(t, <-done, team.CodeUnavailable, team.ReasonCanceled)
	if d := cmp.Diff(before, contents(t, c.Path)); d != "" {
		t.Error(d)
	}
	if st, err := f.repo.Status(f.ctx(), c.Path); err != nil || !st.Clean() {
		t.Errorf("%v %+v", err, st)
	}
}
