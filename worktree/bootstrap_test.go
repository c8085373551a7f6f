package worktree

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

func TestSetup(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("main/.gitignore", "*.log\n/build/\n.env*\nnode_modules\nvendor/\n")
	f.write("main/.worktreeinclude", "# secrets\n.env*\n!.env.person\na.txt\nnew.txt\n")
	f.commitMain("ignore")
	f.write("main/.env", "KEY=1\n")
	f.must(os.Chmod(f.path("main/.env"), 0o600))
	f.write("main/sub/.env.test", "KEY=2\n")
	f.write("main/.env.person", "not this one")
	f.write("main/new.txt", "not ignored: it would be a change")
	f.write("main/node_modules/x/index.js", "x")
	f.write("main/vendor/y.go", "y")
	f.write("main/build/out.o", "o")
	f.must(os.Symlink("out.o", f.path("main/build/link")))
	w := f.create("w")
	f.write("wt/w/sub/.env.test", "the agent's own")
	in := SetupIn{Path: w.Path, Copy: []string{"build", "nothing"}, Link: []string{"node_modules", "vendor"},
		Run: []string{"echo $X >build/ran", "test -e .env"}, Env: []string{"X=1"}, Limit: time.Minute, Log: f.path("setup.log")}
	if done, err := f.repo.IsSetUp(w.Path); done || err != nil {
		t.Error(done, err)
	}
	out, err := f.repo.Setup(f.ctx(), in)
	f.must(err)
	got := contents(t, w.Path)
	for name, want := range map[string]string{".env": "KEY=1\n", "sub/.env.test": "the agent's own", "build/out.o": "o", "build/link": "out.o", "build/ran": "1\n"} {
		if !strings.HasSuffix(got[name], " "+want) {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	for _, name := range []string{".env.person", "new.txt", "vendor"} {
		if _, there := got[name]; there {
			t.Errorf("%s was brought in", name)
		}
	}
	if to, err := os.Readlink(filepath.Join(w.Path, "node_modules")); err != nil || to != f.path("main/node_modules") {
		t.Error(to, err)
	}
	if info, err := os.Stat(filepath.Join(w.Path, ".env")); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if out.Copied != 3 || !slices.Equal(out.Linked, []string{"node_modules"}) || len(out.Notes) != 2 || len(out.Ran) != 2 {
		t.Errorf("%+v", out)
	}
	if st := f.git(w.Path, "status", "--porcelain"); st != "" {
		t.Error(st)
	}
	if done, err := f.repo.IsSetUp(w.Path); !done || err != nil {
		t.Error(done, err)
	}
	if again, err := f.repo.Setup(f.ctx(), in); err != nil || again.Copied != 0 {
		t.Errorf("%v %+v", err, again)
	}
	in.Run = []string{"echo broken >&2; false", "touch never"}
	_, err = f.repo.Setup(f.ctx(), in)
	wantErr(t, err, team.CodeConflict, team.ReasonSetup)
	if log, e := os.ReadFile(in.Log); e != nil || !strings.Contains(string(log), "broken\n# exit status 1") || f.exists(filepath.Join(w.Path, "never")) ||
		!strings.HasSuffix(err.Error(), "broken") {
		t.Errorf("%v %s", err, log)
	}
	ran, err := f.repo.Teardown(f.ctx(), SetupIn{Path: w.Path, Run: []string{"false", "touch build/torn"}, Log: in.Log})
	wantErr(t, err, team.CodeConflict, team.ReasonSetup)
	if len(ran) != 2 || !f.exists(filepath.Join(w.Path, "build/torn")) {
		t.Errorf("%+v", ran)
	}
	_, err = f.repo.Setup(f.ctx(), SetupIn{Path: f.root})
	wantErr(t, err, team.CodeDenied, team.ReasonMainWorktree)
}

// Neither a path nor a link leads out of the worktree.
func TestSetupStaysInside(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("outside/x", "the person's")
	f.write("main/out/secret.log", "s")
	w := f.create("w")
	f.must(os.Symlink(f.path("outside"), filepath.Join(w.Path, "out")))
	f.git(w.Path, "add", "out")
	f.git(w.Path, "commit", "--quiet", "-m", "a link")
	for _, bad := range []string{"../outside", "/etc", ".git", ".git/hooks", "", "."} {
		for _, in := range []SetupIn{{Path: w.Path, Copy: []string{bad}}, {Path: w.Path, Link: []string{bad}}} {
			_, err := f.repo.Setup(f.ctx(), in)
			wantErr(t, err, team.CodeInvalid, team.ReasonInvalidPath)
		}
	}
	_, err := f.repo.Setup(f.ctx(), SetupIn{Path: w.Path, Copy: []string{"out"}})
	if err == nil && f.exists(f.path("outside/secret.log")) {
		t.Error("it wrote outside of the worktree")
	}
	if f.exists(f.path("outside/secret.log")) {
		t.Error("it wrote outside of the worktree")
	}
}

func TestPortBase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, b := f.create("a"), f.create("b")
	one, err := f.repo.PortBase(f.ctx(), a.Path)
	f.must(err)
	two, err := f.repo.PortBase(f.ctx(), b.Path)
	f.must(err)
	if one == two || one%PortCount != 0 || one < portFirst || two >= portLast {
		t.Error(one, two)
	}
	if again, err := f.repo.PortBase(f.ctx(), a.Path); err != nil || again != one {
		t.Error(again, err)
	}
	// A port in the range that would be chosen is in use.
	_, err = f.repo.Remove(f.ctx(), b.Path, RemoveIn{DeleteBranch: true})
	f.must(err)
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(two+3))
	f.must(err)
	b = f.create("b")
	three, err := f.repo.PortBase(f.ctx(), b.Path)
	f.must(err)
	f.must(l.Close())
	if three == two {
		t.Error("the range is in use")
	}
	if e := f.repo.Environ(b.Path, three); e[EnvPortBase] != strconv.Itoa(three) || e[EnvMainTree] != f.root {
		t.Error(e)
	}
}

// The record of a worktree is replaced, never truncated first: after a kill
// while the end of a setup is recorded, the previous record with the base
// remains.
func TestRecordIsReplaced(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	tr, err := f.repo.tree(w.Path)
	f.must(err)
	before, err := os.Open(filepath.Join(tr.dir, recordFile))
	f.must(err)
	defer func() { f.must(before.Close()) }()
	_, err = f.repo.Setup(f.ctx(), SetupIn{Path: w.Path})
	f.must(err)
	var was record
	f.must(json.NewDecoder(before).Decode(&was))
	now := tr.recorded()
	if was.SetUp || was.Base != w.Base || !now.SetUp || now.Base != w.Base {
		t.Errorf("before %+v, now %+v", was, now)
	}
}

// A record that cannot be read is moved aside, not overwritten.
func TestDamagedRecordIsKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	tr, err := f.repo.tree(w.Path)
	f.must(err)
	f.must(os.WriteFile(filepath.Join(tr.dir, recordFile), []byte(`{"base":"12`), 0o600))
	_, err = f.repo.Setup(f.ctx(), SetupIn{Path: w.Path})
	f.must(err)
	aside, err := filepath.Glob(filepath.Join(tr.dir, recordFile+".corrupt-*"))
	f.must(err)
	if len(aside) != 1 {
		t.Fatalf("moved aside: %v", aside)
	}
	if text, err := os.ReadFile(aside[0]); err != nil || string(text) != `{"base":"12` {
		t.Errorf("%q, %v", text, err)
	}
	if !tr.recorded().SetUp {
		t.Error("the new one does not say that it is set up")
	}
}

// A person's command has the person's identity, but not what git has set for the hook that called teamctl.
func TestPlainEnv(t *testing.T) {
	t.Parallel()
	own := []string{"HOME=/h", "GIT_AUTHOR_NAME=Ann", "GIT_COMMITTER_NAME=Ann", "GIT_SSH=ssh"}
	if got := plainEnv(append(slices.Clone(own), "GIT_TRACE=1")); !slices.Equal(got, own) {
		t.Errorf("%q", got)
	}
	if got := plainEnv(append(slices.Clone(own), "GIT_INDEX_FILE=.git/index", "GIT_AUTHOR_DATE=@1 +0000")); !slices.Equal(got, []string{"HOME=/h", "GIT_COMMITTER_NAME=Ann", "GIT_SSH=ssh"}) {
		t.Errorf("in a hook: %q", got)
	}
}
