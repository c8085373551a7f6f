package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/teamctl/teamctl/team"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	base := w.Base
	f.write("wt/w/new file.txt", "x")
	f.git(w.Path, "add", ".")
	f.git(w.Path, "commit", "--quiet", "-m", "one")
	f.write("main/other.txt", "x")
	f.commitMain("other")

	f.write("wt/w/staged.txt", "x")
	f.git(w.Path, "add", "staged.txt")
	f.git(w.Path, "mv", "sub/b.txt", "sub/renamed.txt")
	f.write("wt/w/a.txt", "changed")
	f.write("wt/w/deep/er/un\ntracked", "x")
	f.write("wt/w/noise.log", "ignored")
	f.git(f.dir, "init", "--quiet", f.path("wt/w/clone"))
	f.write("wt/w/clone/x", "x")
	f.commitAll(f.path("wt/w/clone"), "x")

	index := filepath.Join(f.root, ".git/worktrees/w/index")
	before, err := os.Stat(index)
	f.must(err)
	got, err := f.repo.Status(f.ctx(), w.Path)
	f.must(err)
	want := team.WorktreeStatus{
		Path: w.Path, Branch: "team/w", Head: f.git(w.Path, "rev-parse", "HEAD"), Base: base, Ahead: 1,
		Staged: 3, Unstaged: 1, Untracked: 2,
		Changes: []team.FileChange{
			{Path: "a.txt", Index: ".", Work: "M"},
			{Path: "staged.txt", Index: "A", Work: "."},
			{Path: "sub/b.txt", Index: "D", Work: "."},
			{Path: "sub/renamed.txt", Index: "A", Work: "."},
			{Path: "clone/", Index: "?", Work: "?"},
			{Path: "deep/er/un\ntracked", Index: "?", Work: "?"},
		},
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(team.FileChange{}, "Sub", "Mode", "Objects")); d != "" {
		t.Error(d)
	}
	if got.Clean() || !got.Changes[4].Nested() {
		t.Error("not seen")
	}
	after, err := os.Stat(index)
	f.must(err)
	if !after.ModTime().Equal(before.ModTime()) || !os.SameFile(before, after) {
		t.Error("reading the status wrote the index")
	}
	// The user's configuration hides nothing.
	f.git(f.root, "config", "status.showUntrackedFiles", "no")
	f.git(f.root, "config", "status.branch", "false")
	if again, err := f.repo.Status(f.ctx(), w.Path); err != nil || again.Untracked != 2 {
		t.Errorf("%v %+v", err, again)
	}
}

func TestStatusBehind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("main/c", "c")
	f.commitMain("c")
	w := f.create("w")
	f.git(w.Path, "reset", "--quiet", "--hard", "HEAD~1")
	if st, err := f.repo.Status(f.ctx(), w.Path); err != nil || st.Ahead != 0 || st.Behind != 1 {
		t.Errorf("%v %+v", err, st)
	}
	// A worktree made by another program has no recorded base.
	f.git(f.root, "worktree", "add", "--quiet", "--detach", f.path("theirs"))
	if st, err := f.repo.Status(f.ctx(), f.path("theirs")); err != nil || st.Base != "" || st.Ahead != -1 || st.Branch != "" {
		t.Errorf("%v %+v", err, st)
	}
}

func TestStatusOperation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	f.write("main/a.txt", "main\n")
	f.commitMain("main")
	f.write("wt/w/a.txt", "w\n")
	f.commitAll(w.Path, "w")
	for op, start := range map[string]string{"merge": "merge", "rebase": "rebase", "cherry-pick": "cherry-pick"} {
		if out, err := f.tryGit(w.Path, start, "main"); err == nil {
			t.Fatalf("no conflict: %s", out)
		}
		st, err := f.repo.Status(f.ctx(), w.Path)
		f.must(err)
		if st.Operation != op || st.Unmerged != 1 || st.Clean() {
			t.Errorf("%s: %+v", op, st)
		}
		f.git(w.Path, start, "--abort")
	}
	if st, err := f.repo.Status(f.ctx(), w.Path); err != nil || !st.Clean() {
		t.Errorf("%v %+v", err, st)
	}
}

// Whatever cannot be read is an error, never clean.
func TestStatusUnknown(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		given  func(f *fixture, w Worktree)
		code   team.Code
		reason string
	}{
		{"gone", func(f *fixture, w Worktree) { f.must(os.RemoveAll(w.Path)) }, team.CodeNotFound, team.ReasonPathMissing},
		// Inside the main worktree, git would climb to it and report its
		// status.
		{"no .git file", func(f *fixture, w Worktree) { f.must(os.Remove(filepath.Join(w.Path, ".git"))) }, team.CodeInvalid, team.ReasonNotWorktree},
		{"registration gone", func(f *fixture, w Worktree) { f.must(os.RemoveAll(f.path("main/.git/worktrees"))) }, team.CodeConflict, team.ReasonWorktreeUnknown},
		{"broken index", func(f *fixture, w Worktree) { f.write("main/.git/worktrees/w/index", "junk") }, team.CodeInternal, team.ReasonGitFailed},
		{"of another repository", func(f *fixture, w Worktree) {
			f.git(f.dir, "clone", "--quiet", f.root, f.path("other"))
			f.must(os.RemoveAll(w.Path))
			f.git(f.path("other"), "worktree", "add", "--quiet", w.Path)
		}, team.CodeInvalid, team.ReasonNotWorktree},
		{"a link", func(f *fixture, w Worktree) {
			f.must(os.Rename(w.Path, f.path("elsewhere")))
			f.must(os.Symlink(f.path("elsewhere"), w.Path))
		}, team.CodeInvalid, team.ReasonNotWorktree},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			w, err := f.repo.Create(f.ctx(), CreateIn{Path: f.path("main/build/w"), Branch: "team/w"})
			f.must(err)
			c.given(f, w)
			st, err := f.repo.Status(f.ctx(), w.Path)
			wantErr(t, err, c.code, c.reason)
			if st.Head != "" {
				t.Errorf("%+v", st)
			}
			if err := os.Remove(f.path("main/.git/worktrees/w/index")); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err) // a newer git fsck reads the indexes of all worktrees
			}
			f.git(f.root, "worktree", "prune")
		})
	}
	f := newFixture(t)
	w := f.create("w")
	f.must(os.CopyFS(f.path("copy"), os.DirFS(w.Path)))
	_, err := f.repo.Status(f.ctx(), f.path("copy"))
	wantErr(t, err, team.CodeConflict, team.ReasonWorktreeUnknown)
}

func TestParseStatus(t *testing.T) {
	t.Parallel()
	if _, _, err := parseStatus([]byte("# branch.oid abc\x00# branch.head main\x00X what\x00")); err == nil {
		t.Error("an unknown entry was ignored")
	}
	if _, _, err := parseStatus([]byte("# branch.head main\x001 M. N... 100644\x00")); err == nil {
		t.Error("a short entry was ignored")
	}
	if _, _, err := parseStatus(nil); err == nil {
		t.Error("nothing is not clean")
	}
	s, _, err := parseStatus([]byte("# branch.oid (initial)\x00# branch.head main\x00" +
		"2 R. N... 100644 100644 100644 a b R100 new name\x00old name\x00" +
		"u UU N... 100644 100644 100644 100644 a b c both\x00"))
	if err != nil || s.Head != "" || s.Staged != 1 || s.Unmerged != 1 || len(s.Changes) != 2 || s.Changes[0].Path != "new name" || s.Changes[1].Path != "both" {
		t.Errorf("%v %+v", err, s)
	}
}
