package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// Ignored files that exist nowhere else keep a worktree, are named, and are
// restored from the snapshot of a forced removal.
func TestIgnoredWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("main/.gitignore", "*.log\n/build/\n.env*\n*.db\n/data/\nnode_modules/\nlink\n__pycache__/\n")
	f.commitMain("ignore more")
	f.write("main/.env", "from the main checkout\n")
	f.write("main/.env.local", "of the main checkout\n")
	w := f.create("w")
	for name, text := range map[string]string{
		".env": "from the main checkout\n", "build/out": "x", "node_modules/a/b.log": "x", "sub/__pycache__/m.log": "x",
	} {
		f.write("wt/w/"+name, text)
	}
	res, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{})
	if err != nil || res.RescueRef != "" {
		t.Fatalf("with what others have and what is made again: %v %+v", err, res)
	}
	f.git(f.root, "branch", "-D", "team/w")
	w = f.create("w")
	f.write("wt/w/.env", "from the main checkout\n")
	f.write("wt/w/.env.local", "changed by the agent\n")
	f.write("wt/w/app.db", "\x00rows\xff")
	f.write("wt/w/data/deep/set.bin", "\x01\x02")
	f.write("wt/w/data/run.sh", "#!/bin/sh\n")
	f.must(os.Chmod(f.path("wt/w/data/run.sh"), 0o755))
	f.must(os.Symlink("data/run.sh", f.path("wt/w/link")))
	f.write("wt/w/node_modules/a/b.log", "x")
	_, err = f.repo.Remove(f.ctx(), w.Path, RemoveIn{})
	wantErr(t, err, team.CodeConflict, team.ReasonWorktreeDirty)
	for _, name := range []string{".env.local", "app.db", "data/deep/set.bin"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
	if errs := f.repo.CheckRemove(f.ctx(), []string{w.Path, f.path("wt/none")}, RemoveIn{}); team.ReasonOf(errs[0]) != team.ReasonWorktreeDirty || errs[1] != nil {
		t.Errorf("looked at beforehand: %v", errs)
	}
	in := RemoveIn{Force: true, Team: "t", Agent: "a"}
	if errs := f.repo.CheckRemove(f.ctx(), []string{w.Path}, in); errs[0] != nil {
		t.Errorf("looked at beforehand: %v", errs)
	}
	want := contents(t, w.Path)
	delete(want, "node_modules/a/b.log")
	delete(want, ".env") // same as in the main checkout
	res, err = f.repo.Remove(f.ctx(), w.Path, in)
	f.must(err)
	if !strings.Contains(strings.Join(res.Notes, "\n"), "app.db") {
		t.Errorf("what was saved is not named: %q", res.Notes)
	}
	w2, err := f.repo.Restore(f.ctx(), RestoreIn{Ref: res.RescueRef, Path: f.path("wt/back")})
	f.must(err)
	got := contents(t, w2.Path)
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s came back as %q, not %q", name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("came back: %q", got)
	}
	// A worktree that no member has used is removed together with what its
	// setup made.
	w3 := f.create("w3")
	f.write("wt/w3/app.db", "made by a set-up command")
	if _, err := f.repo.Remove(f.ctx(), w3.Path, RemoveIn{Unused: true}); err != nil || f.exists(w3.Path) {
		t.Error(err)
	}
}

// What a later setup makes is not work either until it is changed. What existed
// before, or appears while a member is at work, is.
func TestSetupRecordsWhatItMade(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("main/.gitignore", "*.db\n.env\n")
	f.commitMain("ignore more")
	w := f.create("w")
	setup := func(command string, resting bool) {
		t.Helper()
		_, err := f.repo.Setup(f.ctx(), SetupIn{Path: w.Path, Run: []string{command}, Log: f.path("log"), Resting: func() bool { return resting }})
		f.must(err)
	}
	work := func(want ...string) {
		t.Helper()
		tr, err := f.repo.tree(w.Path)
		f.must(err)
		got, err := f.repo.ignoredWork(f.ctx(), tr)
		f.must(err)
		if !slices.Equal(got, want) {
			t.Errorf("work: %q, want %q", got, want)
		}
	}
	setup("echo 1 >first.db", true)
	work()
	setup("echo 2 >first.db; echo 2 >second.db", true) // there was no work before, as at the first setup
	work()
	f.write("wt/w/mine.db", "the agent's")
	setup("echo 3 >second.db; echo 3 >third.db; echo 3 >>mine.db", true)
	work("mine.db")
	f.write("wt/w/second.db", "changed by the person")
	work("mine.db", "second.db")
	setup("echo 4 >third.db", true)
	work("mine.db", "second.db")
	f.write("main/.env", "KEY=1\n")
	f.write("main/"+IncludeFile, ".env\n")
	setup("echo 5 >fifth.db", false) // it may be the agent's
	f.write("main/.env", "KEY=2\n")
	work("fifth.db", "mine.db", "second.db")
	f.write("wt/w/.env", "KEY=3\n")
	work(".env", "fifth.db", "mine.db", "second.db")

	// A record that cannot be read does not show whether the worktree was used.
	tr, err := f.repo.tree(w.Path)
	f.must(err)
	f.must(os.WriteFile(filepath.Join(tr.dir, recordFile), []byte("{"), 0o600))
	setup("echo 6 >sixth.db", true)
	work(".env", "fifth.db", "first.db", "mine.db", "second.db", "third.db")

	// A failing setup also records what it made.
	w = f.create("x")
	for _, run := range []string{"echo 1 >made.db; false", "true"} {
		_, err := f.repo.Setup(f.ctx(), SetupIn{Path: w.Path, Run: []string{run}, Log: f.path("log")})
		if run == "true" {
			f.must(err)
		}
	}
	work()
}
