package worktree

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

// state is everything that a restore must bring back.
type state struct {
	Files  map[string]string
	Status string
	Staged string
	Head   string
}

func (f *fixture) state(dir string) state {
	f.Helper()
	return state{
		Files:  contents(f.T, dir),
		Status: f.status(dir),
		Staged: f.git(dir, "ls-files", "--stage", "-z"),
		Head:   f.git(dir, "rev-parse", "HEAD"),
	}
}

// status returns git's status of dir, without its warnings about files that do
// not fit their attributes.
func (f *fixture) status(dir string) string {
	f.Helper()
	cmd := exec.Command("git", "-C", dir, "status", "--porcelain=v1", "--no-renames", "-z", "--untracked-files=all")
	out, err := cmd.Output()
	f.must(err)
	return string(out)
}

// withoutBuild drops the ignored file of mess that any build regenerates.
func (s state) withoutBuild() state {
	delete(s.Files, "build/made")
	return s
}

// mess makes every kind of change in the worktree at rel.
func (f *fixture) mess(rel string) {
	f.Helper()
	in := func(name string) string { return rel + "/" + name }
	f.write(in("staged.txt"), "staged\n")
	f.git(f.path(rel), "add", "staged.txt")
	f.write(in("staged.txt"), "staged, then changed\n")
	f.write(in("a.txt"), "changed\n")
	f.git(f.path(rel), "mv", "sub/b.txt", "sub/renamed.txt")
	f.write(in("untracked/deep/file"), "untracked\n")
	f.write(in("bin"), "\x00\x01\xff\r\n\x00")
	f.write(in("crlf.txt"), "one\r\ntwo\n")
	f.write(in("new\nline"), "newline in the name")
	f.write(in(`"quoted"`), "quotes in the name")
	f.write(in("-dash"), "dash")
	f.write(in("empty"), "")
	f.write(in("run.sh"), "#!/bin/sh\n")
	f.must(os.Chmod(f.path(in("run.sh")), 0o755))
	f.must(os.Symlink("nowhere/at all", f.path(in("link"))))
	f.must(os.Chmod(f.path(in("tool.sh")), 0o755)) // mode change alone
	f.must(os.Remove(f.path(in("gone.txt"))))
	f.git(f.path(rel), "rm", "--quiet", "--cached", "kept.txt") // untracked again
	// A file becomes a directory, and the reverse.
	f.must(os.Remove(f.path(in("todir"))))
	f.write(in("todir/x"), "x")
	f.must(os.RemoveAll(f.path(in("tofile"))))
	f.write(in("tofile"), "f")
	f.must(os.Remove(f.path(in("tolink"))))
	f.must(os.Symlink("a.txt", f.path(in("tolink"))))
	f.write(in("noise.log"), "ignored")
	f.write(in("build/made"), "ignored, and made again by any build")
	f.write(in("hidden.txt"), "edited behind git's back\n")
}

// messy makes the worktree wt/w that mess expects.
func (f *fixture) messy() Worktree {
	f.Helper()
	for _, name := range []string{"tool.sh", "gone.txt", "kept.txt", "todir", "tofile/y", "tolink", "hidden.txt"} {
		f.write("main/"+name, name+"\n")
	}
	f.write("main/.gitattributes", "*.txt text=auto\neol.txt text eol=crlf\n")
	f.write("main/eol.txt", "one\ntwo\n")
	f.commitMain("more")
	w := f.create("w")
	f.git(w.Path, "update-index", "--assume-unchanged", "hidden.txt")
	f.mess("wt/w")
	f.write("wt/w/eol.txt", "now with\nplain line ends\n")
	return w
}

// snapshot saves what is in the worktree at path.
func (f *fixture) snapshot(path string) (string, error) {
	t, err := f.repo.tree(path)
	if err != nil {
		return "", err
	}
	return f.repo.snapshot(f.ctx(), t, false, "a test")
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	sha, err := f.snapshot(w.Path)
	if err != nil || sha != w.Base {
		t.Errorf("of a clean worktree: %s %v", sha, err)
	}
	f.must(os.RemoveAll(w.Path))
	f.git(f.root, "worktree", "prune")
	f.git(f.root, "branch", "-D", "team/w")
	w = f.messy()
	index := f.path("main/.git/worktrees/w/index")
	data, err := os.ReadFile(index)
	f.must(err)
	before := f.state(w.Path)
	sha, err = f.snapshot(w.Path)
	f.must(err)
	after, err := os.ReadFile(index)
	f.must(err)
	if string(data) != string(after) {
		t.Error("the index was written")
	}
	if d := cmp.Diff(before, f.state(w.Path)); d != "" {
		t.Error(d)
	}
	if got := f.git(f.root, "rev-parse", sha+"^1"); got != w.Base {
		t.Error(got)
	}
	// It has the shape of a stash: git itself can apply it.
	f.git(f.root, "worktree", "add", "--quiet", "--detach", f.path("by-hand"), w.Base)
	f.git(f.path("by-hand"), "stash", "apply", "--index", "--quiet", sha)
	if got := contents(t, f.path("by-hand")); got["bin"] != before.Files["bin"] || got["link"] != before.Files["link"] {
		t.Errorf("%q", got)
	}
	// Snapshot also works on the user's own checkout, without changing it.
	f.write("main/a.txt", "the person's\n")
	f.git(f.root, "add", "a.txt")
	mine := f.state(f.root)
	sha, err = f.snapshot(f.root)
	f.must(err)
	if d := cmp.Diff(mine, f.state(f.root)); d != "" || f.git(f.root, "show", sha+":a.txt") != "the person's" {
		t.Error(d)
	}
}

// After a forced removal of a worktree with changes, everything is restored
// byte for byte.
func TestForcedRemovalAndRestore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.messy()
	want := f.state(w.Path).withoutBuild()
	// A change hidden from git is restored as a plain change.
	f.git(w.Path, "update-index", "--no-assume-unchanged", "hidden.txt")
	want.Status = f.status(w.Path)
	f.git(w.Path, "update-index", "--assume-unchanged", "hidden.txt")

	_, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{})
	wantErr(t, err, team.CodeConflict, team.ReasonWorktreeDirty)
	res, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{Force: true, Team: "t", Agent: "alice", DeleteBranch: true})
	f.must(err)
	if !strings.HasPrefix(res.RescueRef, "refs/teamctl/rescue/t/alice/20") || !res.BranchDeleted || f.exists(w.Path) {
		t.Fatalf("%+v", res)
	}
	w2, err := f.repo.Restore(f.ctx(), RestoreIn{Ref: res.RescueRef, Path: f.path("back/w"), Branch: "team/w"})
	f.must(err)
	if d := cmp.Diff(want, f.state(w2.Path)); d != "" {
		t.Error(d)
	}
	if w2.Base != w.Base || w2.Branch != "team/w" {
		t.Errorf("%+v", w2)
	}
}

// Files that attributes convert are restored byte for byte, whether staged,
// renamed, made executable or unchanged.
func TestConvertedFilesComeBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("main/.gitattributes", "*.crlf text eol=crlf\n*.id ident\n*.u16 text working-tree-encoding=UTF-16LE\n*.auto text=auto eol=crlf\n")
	for _, name := range []string{"plain", "staged", "moved", "mode", "back"} {
		for _, end := range []string{"crlf", "id", "auto"} {
			f.write("main/"+name+"."+end, "$Id$ one\ntwo\n")
		}
	}
	f.commitMain("files")
	w := f.create("w")
	for _, end := range []string{"crlf", "id", "auto"} {
		f.write("wt/w/plain."+end, "$Id$ one\ntwo\n") // unchanged to git
		f.git(w.Path, "add", "plain."+end)
		f.write("wt/w/staged."+end, "$Id$ new\ntwo\n")
		f.write("wt/w/back."+end, "$Id$ staged\n")
		f.git(w.Path, "add", "staged."+end, "back."+end)
		f.write("wt/w/back."+end, "$Id$ one\ntwo\n") // content of HEAD again, byte for byte
		f.git(w.Path, "mv", "moved."+end, "renamed."+end)
		f.must(os.Chmod(f.path("wt/w/mode."+end), 0o755))
		f.git(w.Path, "add", "mode."+end)
		f.write("wt/w/new."+end, "new\r\nmixed\n")
	}
	f.write("wt/w/text.u16", "o\x00n\x00e\x00\n\x00")
	f.git(w.Path, "add", "text.u16")
	want := f.state(w.Path)
	in := RemoveIn{Force: true, Team: "t", Agent: "a"}
	res, err := f.repo.Remove(f.ctx(), w.Path, in)
	f.must(err)
	_, err = f.repo.Restore(f.ctx(), RestoreIn{Ref: res.RescueRef, Path: w.Path, Branch: w.Branch, Reuse: true})
	f.must(err)
	if d := cmp.Diff(want, f.state(w.Path)); d != "" {
		t.Error(d)
	}
	// A checkpoint holds the changed files.
	ref, _, err := f.repo.Checkpoint(f.ctx(), w.Path, "t", "a", "a test")
	f.must(err)
	f.must(os.Remove(f.path("wt/w/staged.crlf")))
	f.write("wt/w/mode.crlf", "else\n")
	_, err = f.repo.RestoreInto(f.ctx(), w.Path, ref, "t", "a")
	f.must(err)
	got := f.state(w.Path)
	for _, name := range []string{"plain.crlf", "plain.id", "plain.auto"} { // reset by git, and unchanged to it
		delete(want.Files, name)
		delete(got.Files, name)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Random changes with several seeds are all restored.
func TestRandomWorkComesBack(t *testing.T) {
	t.Parallel()
	did := map[string]int{}
	git := func(f *fixture, dir string, args ...string) {
		if _, err := f.tryGit(dir, args...); err == nil {
			did[args[0]]++
		}
	}
	seeds := int64(8)
	if testing.Short() {
		seeds = 3 // together they do everything
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newFixture(t)
			rnd := rand.New(rand.NewSource(seed))
			for i := range 12 {
				f.write(fmt.Sprintf("main/d%d/f%d", i%3, i), strings.Repeat(fmt.Sprintln(i), i))
			}
			// Attributes make the bytes on disk differ from those in a commit.
			f.write("main/.gitattributes", "f1 text eol=crlf\nf2 text eol=lf\nf3 ident\nf4 text working-tree-encoding=UTF-16LE\n"+
				"f5 text=auto\nf6 text=auto eol=crlf\nf7 -text\n")
			f.commitMain("files")
			w := f.create("w")
			name := func() string { return fmt.Sprintf("d%d/f%d", rnd.Intn(4), rnd.Intn(14)) }
			for range 40 {
				n := name()
				full := filepath.Join(w.Path, n)
				switch rnd.Intn(12) {
				case 10, 11: // text with either kind of line ending
					end := []string{"\n", "\r\n"}[rnd.Intn(2)]
					_ = os.Remove(full)
					f.write("wt/w/"+n, strings.Repeat(fmt.Sprint("$Id$ line ", rnd.Intn(4), end), rnd.Intn(4)))
					did["text"]++
				case 0, 1:
					b := make([]byte, rnd.Intn(200))
					_, _ = rnd.Read(b)
					_ = os.Remove(full)
					f.write("wt/w/"+n, string(b))
					did["binary"]++
				case 2:
					_ = os.Remove(full)
				case 3:
					_ = os.Remove(full)
					_ = os.MkdirAll(filepath.Dir(full), 0o755)
					f.must(os.Symlink(name(), full))
					did["symlink"]++
				case 4:
					if info, err := os.Lstat(full); err == nil && info.Mode().IsRegular() {
						f.must(os.Chmod(full, info.Mode()^0o111))
						did["mode"]++
					}
				case 5:
					git(f, w.Path, "add", "--all", "--", n)
				case 6:
					git(f, w.Path, "mv", n, name())
				case 7:
					git(f, w.Path, "rm", "--quiet", "--cached", n)
				case 8:
					git(f, w.Path, "commit", "--quiet", "-m", "work")
				case 9:
					git(f, w.Path, "stash", "push", "--quiet", "--include-untracked")
				}
			}
			f.write("wt/w/last", "there is always something")
			want, stashes := f.state(w.Path), f.stashLog()
			res, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{Force: true, Team: "t", Agent: "a"})
			f.must(err)
			_, err = f.repo.Restore(f.ctx(), RestoreIn{Ref: res.RescueRef, Path: w.Path, Branch: w.Branch, Reuse: true})
			f.must(err)
			if d := cmp.Diff(want, f.state(w.Path)); d != "" {
				t.Error(d)
			}
			if stashes != f.stashLog() {
				t.Error("a stash is gone")
			}
			for _, sha := range strings.Fields(f.git(f.root, "stash", "list", "--format=%H")) {
				f.git(f.root, "cat-file", "-e", sha)
			}
		})
	}
	for _, what := range []string{"binary", "text", "symlink", "mode", "add", "mv", "rm", "commit", "stash"} {
		if did[what] == 0 {
			t.Errorf("no seed did a %s: %v", what, did)
		}
	}
}

// stashLog returns the reflog of the stash, which all worktrees share.
func (f *fixture) stashLog() string {
	data, err := os.ReadFile(f.path("main/.git/logs/refs/stash"))
	if err != nil {
		return ""
	}
	return string(data)
}

// In the middle of a conflicting merge, the files are restored with their
// conflict markers, and the snapshot reaches the other side.
func TestSnapshotOfAConflict(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	f.write("wt/w/a.txt", "w\n")
	f.commitAll(w.Path, "w")
	f.git(f.root, "checkout", "--quiet", "--detach")
	f.write("main/a.txt", "other\n")
	f.commitMain("other")
	other := f.head(f.root)
	if _, err := f.tryGit(w.Path, "merge", other); err == nil {
		t.Fatal("no conflict")
	}
	f.git(f.root, "checkout", "--quiet", "main") // now only MERGE_HEAD reaches other
	f.write("wt/w/notes.txt", "notes")
	want := contents(t, w.Path)
	res, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{Force: true, Team: "t", Agent: "a"})
	f.must(err)
	f.git(f.root, "merge-base", "--is-ancestor", other, res.RescueRef)
	w2, err := f.repo.Restore(f.ctx(), RestoreIn{Ref: res.RescueRef, Path: f.path("wt/back")})
	f.must(err)
	if d := cmp.Diff(want, contents(t, w2.Path)); d != "" {
		t.Error(d)
	}
}

func TestRestore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	f.write("wt/w/x", "x")
	sha, err := f.snapshot(w.Path)
	f.must(err)
	f.commitAll(w.Path, "moved on")
	f.git(w.Path, "checkout", "--quiet", "--detach")
	_, err = f.repo.Restore(f.ctx(), RestoreIn{Ref: sha, Path: f.path("wt/back"), Branch: "team/w", Reuse: true})
	wantErr(t, err, team.CodeConflict, team.ReasonBranchExists)
	_, err = f.repo.Restore(f.ctx(), RestoreIn{Ref: "nope", Path: f.path("wt/back")})
	wantErr(t, err, team.CodeNotFound, team.ReasonUnknownRev)
	// A plain commit becomes a clean worktree.
	w2, err := f.repo.Restore(f.ctx(), RestoreIn{Ref: "main", Path: f.path("wt/back")})
	f.must(err)
	if st, err := f.repo.Status(f.ctx(), w2.Path); err != nil || !st.Clean() || st.Head != w.Base {
		t.Errorf("%v %+v", err, st)
	}
}

// A name that ends in CR is a name of its own.
func TestSnapshotOfCarriageReturn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	want := map[string]string{"new": "plain", "new\r": "with CR", "Icon\r": ""}
	for name, content := range want {
		f.write("wt/w/"+name, content)
	}
	sha, err := f.snapshot(w.Path)
	f.must(err)
	back, err := f.repo.Restore(f.ctx(), RestoreIn{Ref: sha, Path: f.path("wt/back")})
	f.must(err)
	for name, content := range want {
		if got, err := os.ReadFile(filepath.Join(back.Path, name)); err != nil || string(got) != content {
			t.Errorf("%q has %q, %v", name, got, err)
		}
	}
}

// After a kill in the middle of a snapshot, worktree and index are unchanged,
// nothing is removed, and the next removal completes.
func TestSnapshotKilled(t *testing.T) {
	t.Parallel()
	steps := []string{"snapshot-staged", "snapshot-begun", "snapshot-made"}
	if testing.Short() {
		steps = steps[:1]
	}
	for _, step := range steps {
		f := newFixture(t)
		w := f.messy()
		want := f.state(w.Path)
		in := RemoveIn{Force: true, Team: "demo", Agent: "w"}
		killed(t, childJob{Repo: f.root, Do: "remove", Path: w.Path, Remove: in, KillAt: step})
		if _, err := f.repo.Repair(f.ctx()); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, f.state(w.Path)); d != "" {
			t.Error(step, d)
		}
		res, err := f.repo.Remove(f.ctx(), w.Path, in)
		f.must(err)
		_, err = f.repo.Restore(f.ctx(), RestoreIn{Ref: res.RescueRef, Path: w.Path, Branch: w.Branch, Reuse: true})
		f.must(err)
		if d := cmp.Diff(want.withoutBuild().Files, f.state(w.Path).Files); d != "" {
			t.Error(step, d)
		}
		f.repo.sweepIndexes()
	}
}

// A temporary index is in use for as long as its process has it: a repair beside a checkpoint does not
// take it away, however old the index is of which it is a copy.
func TestRepairLeavesIndexes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("w")
	f.write("wt/w/a.txt", "changed\n")
	old := time.Now().Add(-2 * time.Hour)
	f.must(os.Chtimes(f.path("main/.git/worktrees/w/index"), old, old))
	index, drop, err := f.repo.tempIndex(f.path("main/.git/worktrees/w/index"))
	f.must(err)
	before, err := os.ReadFile(index)
	f.must(err)
	if _, err := f.repo.Repair(f.ctx()); err != nil {
		t.Error(err)
	}
	if now, err := os.ReadFile(index); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the index is gone: %v", err)
	}
	drop()
}

func TestLargeFilesAreTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	f.write("wt/w/big.bin", "")
	f.must(os.Truncate(f.path("wt/w/big.bin"), largeFile))
	res, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{Force: true, Team: "demo", Agent: "w"})
	if err != nil || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "big.bin") {
		t.Errorf("%v %q", err, res.Notes)
	}
}
