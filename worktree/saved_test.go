package worktree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

// countGits puts a git first in PATH that logs every run, and returns a
// function that counts the runs since the last call.
func (f *fixture) countGits() func() int {
	f.Helper()
	real, err := exec.LookPath("git")
	f.must(err)
	log := f.path("gits")
	f.write("bin/git", fmt.Sprintf("#!/bin/sh\necho \"$*\" >>%s\nexec %s \"$@\"\n", log, real))
	f.must(os.Chmod(f.path("bin/git"), 0o755))
	f.Setenv("PATH", f.path("bin")+":"+os.Getenv("PATH"))
	f.write("gits", "")
	return func() int {
		data, err := os.ReadFile(log)
		f.must(err)
		f.write("gits", "")
		return strings.Count(string(data), "\n")
	}
}

// age sets a file's time before the current clock tick, as for most work.
func (f *fixture) age(rel string) {
	f.Helper()
	old := time.Now().Add(-time.Hour)
	f.must(os.Chtimes(f.path(rel), old, old))
}

func TestCheckpoint(t *testing.T) {
	f := newFixture(t)
	w := f.create("w")
	gits := f.countGits()
	take := func(wantFresh bool) string {
		t.Helper()
		ref, fresh, err := f.repo.Checkpoint(f.ctx(), w.Path, "demo", "w", "a test")
		f.must(err)
		if fresh != wantFresh {
			t.Errorf("fresh: %v, want %v (%s)", fresh, wantFresh, ref)
		}
		return ref
	}
	first := take(true) // the commit at which the worktree was created
	gits()
	if take(false) != first || gits() != 1 {
		t.Error("an unchanged worktree costs more than one git status")
	}
	f.write("wt/w/work.txt", "work")
	f.age("wt/w/work.txt")
	second := take(true)
	gits()
	if take(false) != second || gits() != 1 {
		t.Error("unchanged work costs more than one git status")
	}
	// Same size and file, different content.
	f.write("wt/w/work.txt", "kwor")
	third := take(true)
	if take(false) != third {
		t.Error("a file that is too new is saved twice")
	}
	f.git(w.Path, "add", "work.txt")
	fourth := take(true) // staged only
	if len(map[string]bool{first: true, second: true, third: true, fourth: true}) != 4 {
		t.Error(first, second, third, fourth)
	}
	if f.git(f.root, "show", third+":work.txt") != "kwor" || f.git(f.root, "show", second+":work.txt") != "work" {
		t.Error("wrong content")
	}
	if st := f.git(f.root, "status", "--porcelain"); st != "" {
		t.Errorf("the person's checkout: %s", st)
	}
	// Only the newest checkpoints stay.
	var older strings.Builder
	for i := range checkpointsKept {
		fmt.Fprintf(&older, "create %sdemo/w/%s %s\n", checkpointRoot, time.Unix(int64(i), 0).UTC().Format(refTime), first)
	}
	f.feed(older.String(), "update-ref", "--stdin")
	for i := range 3 {
		f.write("wt/w/work.txt", fmt.Sprintf("%050d", i))
		take(true)
	}
	list, err := f.repo.Saves(f.ctx(), KindCheckpoint, "demo", "w")
	f.must(err)
	if len(list) != checkpointsKept {
		t.Errorf("%d checkpoints", len(list))
	}
	if got := f.git(f.root, "show", list[0].Commit+":work.txt"); !strings.HasSuffix(got, "2") {
		t.Errorf("the newest is %s", got)
	}
	_, _, err = f.repo.Checkpoint(f.ctx(), f.root, "demo", "w", "a test")
	wantErr(t, err, team.CodeDenied, team.ReasonMainWorktree)
}

// After the clock was set back a checkpoint is kept whatever the dates of the others are, it is the last
// one, and those dated after now are dropped first.
func TestCheckpointAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	head := f.git(w.Path, "rev-parse", "HEAD")
	var others strings.Builder
	date := func(at time.Time) string { return checkpointRoot + "demo/w/" + at.UTC().Format(refTime) }
	ahead := time.Now().Add(2 * time.Hour)
	for i := range checkpointsKept {
		fmt.Fprintf(&others, "create %s %s\n", date(ahead.Add(time.Duration(i)*time.Second)), head)
	}
	old := date(time.Now().Add(-time.Hour))
	fmt.Fprintf(&others, "create %s %s\n", old, head)
	f.feed(others.String(), "update-ref", "--stdin")
	var refs []string
	for i := range 4 {
		f.write("wt/w/work.txt", fmt.Sprintf("%050d", i))
		ref, fresh, err := f.repo.Checkpoint(f.ctx(), w.Path, "demo", "w", "a test")
		f.must(err)
		refs = append(refs, ref)
		list, err := f.repo.Saves(f.ctx(), KindCheckpoint, "demo", "w")
		f.must(err)
		has := map[string]bool{}
		for _, s := range list {
			has[s.Ref] = true
		}
		if !fresh || !has[ref] || !has[old] || !has[refs[0]] || len(list) > checkpointsKept {
			t.Errorf("%s, fresh %v, is kept: %v, %v; %d checkpoints", ref, fresh, has[ref], has[old], len(list))
		}
		if last := f.repo.LastCheckpoint(w.Path, list); last.Ref != ref || list[0].Ref == ref {
			t.Errorf("the last is %s, want %s", last.Ref, ref)
		}
	}
	again, fresh, err := f.repo.Checkpoint(f.ctx(), w.Path, "demo", "w", "a test")
	f.must(err)
	f.age("wt/w/work.txt") // looks changed, and is not
	same, _, err := f.repo.Checkpoint(f.ctx(), w.Path, "demo", "w", "a test")
	f.must(err)
	list, err := f.repo.Saves(f.ctx(), KindCheckpoint, "demo", "w")
	f.must(err)
	if last := f.repo.LastCheckpoint(w.Path, list); fresh || again != refs[3] || same != again || last.Ref != again {
		t.Errorf("%s, %s, fresh %v; the last is %s", again, same, fresh, last.Ref)
	}
	// One that is newer than all that was there then, since its process was killed.
	list = append([]team.SavedWork{{Ref: "killed", At: ahead.Add(time.Hour)}}, list...)
	if last := f.repo.LastCheckpoint(w.Path, list); last.Ref != "killed" {
		t.Errorf("the last is %s", last.Ref)
	}
	if last := f.repo.LastCheckpoint(f.path("nowhere"), list[1:]); last.Ref != list[1].Ref {
		t.Errorf("without a worktree the last is %s", last.Ref)
	}
}

// A killed checkpoint is either complete or absent.
func TestCheckpointKilled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	f.write("wt/w/work.txt", "work")
	killed(t, childJob{Repo: f.root, Do: "checkpoint", Path: w.Path, KillAt: "checkpointed"})
	list, err := f.repo.Saves(f.ctx(), KindCheckpoint, "demo", "w")
	f.must(err)
	if len(list) != 1 || f.git(f.root, "show", list[0].Ref+":work.txt") != "work" {
		t.Errorf("%+v", list)
	}
	if _, _, err := f.repo.Checkpoint(f.ctx(), w.Path, "demo", "w", "a test"); err != nil {
		t.Error(err)
	}
}

// A worktree is reset to a checkpoint byte for byte, and its previous state is
// saved.
func TestRestoreInto(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.messy()
	ref, _, err := f.repo.Checkpoint(f.ctx(), w.Path, "demo", "w", "a test")
	f.must(err)
	want := f.state(w.Path).withoutBuild()
	want.Status = strings.Replace(want.Status, "D  kept.txt", " M hidden.txt\x00D  kept.txt", 1) // the assume-unchanged mark is lost, the change is kept
	f.git(w.Path, "update-index", "--no-assume-unchanged", "hidden.txt")
	f.git(w.Path, "add", "--all")
	f.git(w.Path, "commit", "--quiet", "-m", "went on")
	f.write("wt/w/later.txt", "later")
	f.write("wt/w/a.txt", "later\n")
	f.must(os.Remove(filepath.Join(w.Path, "bin")))
	later := f.state(w.Path).withoutBuild()
	rescue, err := f.repo.RestoreInto(f.ctx(), w.Path, ref, "demo", "w")
	f.must(err)
	if d := cmp.Diff(want, f.state(w.Path).withoutBuild()); d != "" {
		t.Error(d)
	}
	if b := f.git(w.Path, "symbolic-ref", "--short", "HEAD"); b != "team/w" {
		t.Error(b)
	}
	again, err := f.repo.RestoreInto(f.ctx(), w.Path, rescue, "demo", "w")
	f.must(err)
	if d := cmp.Diff(later, f.state(w.Path).withoutBuild()); d != "" || again == "" {
		t.Errorf("%q %s", again, d)
	}
	if f.state(w.Path).Files["noise.log"] == "" {
		t.Error("an ignored file was deleted")
	}
}

// A directory that a link has replaced since is restored as a directory: nothing is written where the
// link points to.
func TestRestoreIntoThroughLink(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	f.write("wt/w/.gitignore", "data\n")
	f.commitAll(w.Path, "ignore data")
	f.write("wt/w/data/deep/x", "old")
	f.write("wt/w/a.txt", "changed\n")
	ref, _, err := f.repo.Checkpoint(f.ctx(), w.Path, "demo", "w", "a test")
	f.must(err)
	saved, err := f.repo.RestoreInto(f.ctx(), w.Path, ref, "demo", "w") // with what git ignores
	f.must(err)
	if saved == "" {
		t.Fatal("nothing was saved")
	}
	f.must(os.RemoveAll(filepath.Join(w.Path, "data")))
	f.write("victim/deep/x", "the only copy")
	f.must(os.Symlink(f.path("victim"), filepath.Join(w.Path, "data")))
	if _, err := f.repo.RestoreInto(f.ctx(), w.Path, saved, "demo", "w"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(f.path("victim/deep/x")); err != nil || string(got) != "the only copy" {
		t.Errorf("outside of the worktree: %q, %v", got, err)
	}
	if got, err := os.ReadFile(filepath.Join(w.Path, "data/deep/x")); err != nil || string(got) != "old" {
		t.Errorf("restored: %q, %v", got, err)
	}
	if fi, err := os.Lstat(filepath.Join(w.Path, "data")); err != nil || !fi.IsDir() {
		t.Errorf("data is %v, %v", fi, err)
	}
}

func TestRestoreIntoRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	ref, _, err := f.repo.Checkpoint(f.ctx(), w.Path, "demo", "w", "a test")
	f.must(err)
	f.write("wt/w/work.txt", "work")
	cmd := exec.Command("sleep", "60")
	cmd.Dir = w.Path
	f.must(cmd.Start())
	_, err = f.repo.RestoreInto(f.ctx(), w.Path, ref, "demo", "w")
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	wantErr(t, err, team.CodeConflict, team.ReasonWorktreeBusy)
	_, err = f.repo.RestoreInto(f.ctx(), f.root, ref, "demo", "w")
	wantErr(t, err, team.CodeDenied, team.ReasonMainWorktree)
	_, err = f.repo.RestoreInto(f.ctx(), w.Path, "refs/teamctl/none", "demo", "w")
	wantErr(t, err, team.CodeNotFound, team.ReasonUnknownRev)
}

func TestSaves(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"x", "y"} {
		w := f.create(name)
		f.write("wt/"+name+"/work.txt", "work of "+name+"\n")
		_, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{Force: true, Team: "demo", Agent: name})
		f.must(err)
	}
	all, err := f.repo.Saves(f.ctx(), KindRescue, "demo", "")
	f.must(err)
	if len(all) != 2 || all[0].Agent != "y" || all[1].Agent != "x" || all[0].Clean || all[0].Team != "demo" ||
		time.Since(all[0].At) > time.Hour || all[0].What != "y, a forced removal" {
		t.Errorf("%+v", all)
	}
	for teamKey, agent := range map[string]string{"demo": "z", "other": ""} {
		if list, err := f.repo.Saves(f.ctx(), "", teamKey, agent); err != nil || len(list) != 0 {
			t.Errorf("%s %s: %v %v", teamKey, agent, list, err)
		}
	}
	s, err := f.repo.Saved(f.ctx(), strings.TrimPrefix(all[1].Ref, "refs/teamctl/"))
	f.must(err)
	patch, err := f.repo.SavedChanges(f.ctx(), s, true)
	f.must(err)
	if !strings.Contains(patch, "+work of x") {
		t.Error(patch)
	}
	stale := s
	stale.Commit = all[0].Commit
	if err := f.repo.DropSaved(f.ctx(), stale); err == nil {
		t.Error("dropped what was not looked at")
	}
	f.must(f.repo.DropSaved(f.ctx(), s))
	_, err = f.repo.Saved(f.ctx(), s.Ref)
	wantErr(t, err, team.CodeNotFound, team.ReasonUnknownRev)
}
