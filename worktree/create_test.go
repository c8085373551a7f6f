package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	head := f.git(f.root, "rev-parse", "HEAD")
	before := f.git(f.root, "status", "--porcelain")
	w, err := f.repo.Create(f.ctx(), CreateIn{Path: f.path("x/y/alice"), Branch: "teamctl/t/alice"})
	f.must(err)
	if w.Branch != "teamctl/t/alice" || w.Base != head || w.Repo != f.root || len(w.Notes) != 0 {
		t.Errorf("%+v", w)
	}
	if got, want := contents(t, w.Path), contents(t, f.root); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("checked out %v, want %v", got, want)
	}
	st, err := f.repo.Status(f.ctx(), w.Path)
	f.must(err)
	if !st.Clean() || st.Base != head || st.Ahead != 0 || st.Branch != w.Branch {
		t.Errorf("%+v", st)
	}
	if got := f.git(f.root, "status", "--porcelain"); got != before {
		t.Errorf("the main worktree changed: %s", got)
	}
	r2, w2, err := OpenWorktree(f.ctx(), w.Path)
	f.must(err)
	if r2.Root() != f.root || r2.common != filepath.Join(f.root, ".git") || w2.Base != head || w2.Branch != w.Branch {
		t.Errorf("%+v %+v", r2, w2)
	}
}

func TestCreateDetachedAtBase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.git(f.root, "rev-parse", "HEAD")
	f.git(f.root, "tag", "-a", "v1", "-m", "v1")
	f.write("main/new.txt", "new")
	f.commitMain("second")
	f.must(os.MkdirAll(f.path("wt/empty"), 0o755))
	w, err := f.repo.Create(f.ctx(), CreateIn{Path: f.path("wt/empty"), Base: "v1"})
	f.must(err)
	if w.Base != first || f.exists(f.path("wt/empty/new.txt")) {
		t.Errorf("%+v", w)
	}
	// A detached main HEAD is also a valid base.
	f.git(f.root, "checkout", "--quiet", "--detach")
	f.create("fromdetached")
}

func TestCreateTenAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 150 {
		f.write(fmt.Sprintf("main/many/%03d", i), strings.Repeat("x", i))
	}
	f.commitMain("many")
	var wg sync.WaitGroup
	errs := make([]error, 10)
	for i := range errs {
		in := CreateIn{Path: f.path(fmt.Sprintf("wt/w%d", i)), Branch: fmt.Sprintf("team/w%d", i)}
		wg.Go(func() {
			if i%3 == 0 { // from another process
				out, err := childCmd(t, childJob{Repo: f.root, Do: "create", Create: in}).CombinedOutput()
				if err != nil {
					errs[i] = fmt.Errorf("%w: %s", err, out)
				}
				return
			}
			_, errs[i] = f.repo.Create(f.ctx(), in)
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("w%d: %v", i, err)
			continue
		}
		st, err := f.repo.Status(f.ctx(), f.path(fmt.Sprintf("wt/w%d", i)))
		f.must(err)
		if !st.Clean() {
			t.Errorf("w%d: %s", i, summary(st))
		}
	}
	list, err := f.repo.List(f.ctx())
	f.must(err)
	if len(list) != 11 || !list[0].Main || list[0].Path != f.root {
		t.Errorf("%+v", list)
	}
}

func TestFault40CreateRefuses(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		given  func(f *fixture)
		in     CreateIn // Path is relative to the fixture
		code   team.Code
		reason string
	}{
		{"branch exists", func(f *fixture) { f.git(f.root, "branch", "b") },
			CreateIn{Path: "wt/w", Branch: "b"}, team.CodeConflict, team.ReasonBranchExists},
		{"branch checked out", nil,
			CreateIn{Path: "wt/w", Branch: "main"}, team.CodeConflict, team.ReasonCheckedOut},
		{"branch checked out, reuse", nil,
			CreateIn{Path: "wt/w", Branch: "main", Reuse: true}, team.CodeConflict, team.ReasonCheckedOut},
		{"ref below", func(f *fixture) { f.git(f.root, "branch", "team/alice") },
			CreateIn{Path: "wt/w", Branch: "team"}, team.CodeConflict, team.ReasonRefConflict},
		{"ref above", func(f *fixture) { f.git(f.root, "branch", "team") },
			CreateIn{Path: "wt/w", Branch: "team/alice"}, team.CodeConflict, team.ReasonRefConflict},
		{"path is a file", func(f *fixture) { f.write("wt/w", "x") },
			CreateIn{Path: "wt/w", Branch: "b"}, team.CodeConflict, team.ReasonPathExists},
		{"path is not empty", func(f *fixture) { f.write("wt/w/x", "x") },
			CreateIn{Path: "wt/w", Branch: "b"}, team.CodeConflict, team.ReasonPathExists},
		{"path is a link", func(f *fixture) { f.write("wt/x", ""); f.must(os.Symlink("nowhere", f.path("wt/w"))) },
			CreateIn{Path: "wt/w", Branch: "b"}, team.CodeConflict, team.ReasonPathExists},
		{"path is a worktree", func(f *fixture) { f.create("w") },
			CreateIn{Path: "wt/w", Branch: "b"}, team.CodeConflict, team.ReasonWorktreeExists},
		{"path in .git", nil,
			CreateIn{Path: "main/.git/w", Branch: "b"}, team.CodeInvalid, team.ReasonInvalidPath},
		{"base unknown", nil,
			CreateIn{Path: "wt/w", Branch: "b", Base: "nope"}, team.CodeNotFound, team.ReasonUnknownRev},
		{"base is an option", nil,
			CreateIn{Path: "wt/w", Branch: "b", Base: "--force"}, team.CodeInvalid, team.ReasonUnknownRev},
		{"bad branch", nil,
			CreateIn{Path: "wt/w", Branch: "a..b"}, team.CodeInvalid, team.ReasonBadBranch},
		{"ref lock left over", func(f *fixture) { f.write("main/.git/refs/heads/b.lock", "") },
			CreateIn{Path: "wt/w", Branch: "b"}, team.CodeConflict, team.ReasonLockFile},
		{"stale but locked", func(f *fixture) {
			w := f.create("w")
			f.git(f.root, "worktree", "lock", "--reason", "on a disk", w.Path)
			f.must(os.RemoveAll(w.Path))
		}, CreateIn{Path: "wt/w", Branch: "b"}, team.CodeConflict, team.ReasonWorktreeLocked},
		{"checkout fails", func(f *fixture) {
			f.write("main/.gitattributes", "*.txt filter=broken\n")
			f.commitMain("filter")
			f.git(f.root, "config", "filter.broken.smudge", "false")
			f.git(f.root, "config", "filter.broken.required", "true")
		}, CreateIn{Path: "wt/w", Branch: "b"}, team.CodeInternal, team.ReasonGitFailed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			if c.given != nil {
				c.given(f)
			}
			refs, list := f.git(f.root, "for-each-ref"), f.git(f.root, "worktree", "list", "--porcelain")
			wtBefore := f.exists(f.path("wt"))
			c.in.Path = f.path(c.in.Path)
			stood := f.exists(c.in.Path)
			_, err := f.repo.Create(f.ctx(), c.in)
			wantErr(t, err, c.code, c.reason)
			if got := f.git(f.root, "for-each-ref"); got != refs {
				t.Errorf("refs changed:\n%s\n%s", refs, got)
			}
			if got := f.git(f.root, "worktree", "list", "--porcelain"); got != list {
				t.Errorf("registrations changed:\n%s\n%s", list, got)
			}
			if f.exists(c.in.Path) != stood || f.exists(f.path("wt")) != wtBefore {
				t.Error("a directory was left, or removed")
			}
		})
	}
	t.Run("relative", func(t *testing.T) {
		f := newFixture(t)
		_, err := f.repo.Create(f.ctx(), CreateIn{Path: "wt", Branch: "b"})
		wantErr(t, err, team.CodeInvalid, team.ReasonInvalidPath)
	})
}

// The message contains age and path of a left-over lock, because the user
// decides by them.
func TestFault40LeftOverLock(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("main/.git/packed-refs.lock", "")
	f.write("main/.git/refs/heads/b.lock", "")
	old := time.Now().Add(-3 * time.Hour)
	f.must(os.Chtimes(f.path("main/.git/packed-refs.lock"), old, old))
	_, err := f.repo.Create(f.ctx(), CreateIn{Path: f.path("wt/w"), Branch: "b"})
	wantErr(t, err, team.CodeConflict, team.ReasonLockFile)
	if !strings.Contains(err.Error(), "packed-refs.lock") || !strings.Contains(err.Error(), "(3h0m") || team.HintOf(err) == "" {
		t.Error(err)
	}
	// A left-over config.lock does not matter: nothing is configured.
	f.must(os.Remove(f.path("main/.git/packed-refs.lock")))
	f.must(os.Remove(f.path("main/.git/refs/heads/b.lock")))
	f.write("main/.git/config.lock", "")
	f.create("w")
}

func TestCreateReuse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("alice")
	f.write("wt/alice/work.txt", "work")
	f.commitAll(w.Path, "work")
	tip := f.head(w.Path)
	// The directory is deleted while the agent uses it; its branch and its
	// staged changes survive.
	f.write("wt/alice/staged.txt", "staged")
	f.git(w.Path, "add", "staged.txt")
	f.must(os.RemoveAll(w.Path))
	w2, err := f.repo.Create(f.ctx(), CreateIn{Path: w.Path, Branch: w.Branch, Base: w.Base, Reuse: true})
	f.must(err)
	st, err := f.repo.Status(f.ctx(), w2.Path)
	f.must(err)
	if st.Head != tip || st.Ahead != 1 || st.Behind != 0 || !st.Clean() {
		t.Errorf("%+v", st)
	}
	ref := f.git(f.root, "for-each-ref", "--format=%(refname)", "refs/teamctl/rescue")
	if got := f.git(f.root, "show", ref+":staged.txt"); got != "staged" {
		t.Errorf("what was staged is lost: %s", got)
	}
	if len(w2.Notes) != 1 || !strings.Contains(w2.Notes[0], ref) {
		t.Errorf("notes: %q", w2.Notes)
	}
}

// Only the registration at the path is pruned; another may be on an unmounted
// disk.
func TestCreatePrunesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, b := f.create("a"), f.create("b")
	f.must(os.RemoveAll(a.Path))
	f.must(os.Rename(b.Path, f.path("unmounted")))
	_, err := f.repo.Create(f.ctx(), CreateIn{Path: a.Path, Branch: "team/a", Reuse: true})
	f.must(err)
	f.must(os.Rename(f.path("unmounted"), b.Path))
	if st, err := f.repo.Status(f.ctx(), b.Path); err != nil || !st.Clean() {
		t.Errorf("%v %+v", err, st)
	}
}

func TestFault02CreateKilled(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"begun", "added", "recorded", "checked-out", "ended"} {
		t.Run(step, func(t *testing.T) {
			f := newFixture(t)
			in := CreateIn{Path: f.path("wt/w"), Branch: "team/w"}
			killed(t, childJob{Repo: f.root, Do: "create", Create: in, KillAt: step})
			if step == "ended" { // complete
				f.create("other")
				if st, err := f.repo.Status(f.ctx(), in.Path); err != nil || !st.Clean() {
					t.Errorf("%v %+v", err, st)
				}
				return
			}
			w, err := f.repo.Create(f.ctx(), in)
			f.must(err)
			if len(w.Notes) != 1 {
				t.Errorf("notes: %q", w.Notes)
			}
			if st, err := f.repo.Status(f.ctx(), w.Path); err != nil || !st.Clean() {
				t.Errorf("%v %+v", err, st)
			}
			if refs := f.git(f.root, "for-each-ref", "refs/teamctl"); refs != "" {
				t.Errorf("nothing was at stake, but: %s", refs)
			}
		})
	}
}

// The user adds a file to the half-made worktree before the repair.
func TestCreateKilledThenUsed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := CreateIn{Path: f.path("wt/w"), Branch: "team/w"}
	killed(t, childJob{Repo: f.root, Do: "create", Create: in, KillAt: "recorded"})
	f.write("wt/w/precious.txt", "precious")
	notes, err := f.repo.Repair(f.ctx())
	f.must(err)
	ref := f.git(f.root, "for-each-ref", "--format=%(refname)", "refs/teamctl/rescue")
	if len(notes) != 1 || !strings.Contains(notes[0], ref) || f.git(f.root, "show", ref+":precious.txt") != "precious" {
		t.Errorf("%q %q", notes, ref)
	}
	if f.exists(in.Path) || strings.Contains(f.branches(), "team/w") {
		t.Error("not undone")
	}
	// Work after a complete checkout stays where it is.
	killed(t, childJob{Repo: f.root, Do: "create", Create: in, KillAt: "checked-out"})
	f.write("wt/w/precious.txt", "precious")
	notes, err = f.repo.Repair(f.ctx())
	f.must(err)
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "kept ") || !f.exists(f.path("wt/w/precious.txt")) {
		t.Errorf("%q", notes)
	}
}

// git itself is killed inside `worktree add`: it leaves a registration without
// a path, marked so that prune never removes it, and a .git file on its own.
func TestCreateGitKilled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := CreateIn{Path: f.path("wt/w"), Branch: "team/w"}
	killed(t, childJob{Repo: f.root, Do: "create", Create: in, KillAt: "added"})
	admin := f.path("main/.git/worktrees/w")
	f.must(os.Remove(filepath.Join(admin, "gitdir")))
	f.must(os.Remove(filepath.Join(admin, "HEAD")))
	f.must(os.WriteFile(filepath.Join(admin, "locked"), []byte("initializing\n"), 0o644))
	if _, err := f.repo.Create(f.ctx(), in); err != nil {
		t.Fatal(err)
	}
	list, err := f.repo.List(f.ctx())
	f.must(err)
	if len(list) != 2 {
		t.Errorf("%+v", list)
	}
}

// slowCheckout makes every checkout of a .txt file wait until release is
// called; started returns once one waits.
func (f *fixture) slowCheckout() (started, release func()) {
	f.Helper()
	hello, bye := f.path("hello"), f.path("bye")
	f.must(syscall.Mkfifo(hello, 0o600))
	f.must(syscall.Mkfifo(bye, 0o600))
	f.write("main/.gitattributes", "a.txt filter=slow\n")
	f.commitMain("filter")
	f.git(f.root, "config", "filter.slow.smudge", "echo >"+hello+"; read x <"+bye+"; cat")
	started = func() {
		p, err := os.Open(hello)
		f.must(err)
		_, err = io.ReadAll(p) // read to the end: closing earlier would kill the writer
		f.must(errors.Join(err, p.Close()))
	}
	release = func() {
		eventually(f.T, "the filter reads", func() bool {
			p, err := os.OpenFile(bye, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if errors.Is(err, syscall.ENXIO) {
				return false
			}
			f.must(err)
			f.must(p.Close())
			return true
		})
	}
	return started, release
}

func TestCreateGivenUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	started, _ := f.slowCheckout()
	refs := f.git(f.root, "for-each-ref")
	ctx, cancel := context.WithCancel(f.ctx())
	done := make(chan error, 1)
	go func() {
		_, err := f.repo.Create(ctx, CreateIn{Path: f.path("wt/w"), Branch: "team/w"})
		done <- err
	}()
	started()
	cancel()
	err := <-done
	wantErr(t, err, team.CodeUnavailable, team.ReasonCanceled)
	if f.exists(f.path("wt/w")) || f.git(f.root, "for-each-ref") != refs {
		t.Error("not rolled back")
	}
}

// The supervisor is killed but its git is not: nothing may be undone while git
// still writes.
func TestCreateOrphanGit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	started, release := f.slowCheckout()
	cmd := childCmd(t, childJob{Repo: f.root, Do: "create", Create: CreateIn{Path: f.path("wt/w"), Branch: "team/w"}})
	f.must(cmd.Start())
	started()
	f.must(cmd.Process.Kill())
	_ = cmd.Wait()
	notes, err := f.repo.Repair(f.ctx())
	f.must(err)
	if len(notes) != 0 || !f.exists(f.path("wt/w")) {
		t.Errorf("undone under a live git: %q", notes)
	}
	release()
	eventually(t, "git ends and the repair undoes", func() bool {
		notes, err = f.repo.Repair(f.ctx())
		f.must(err)
		return len(notes) == 1
	})
	if f.exists(f.path("wt/w")) || strings.Contains(f.branches(), "team/w") {
		t.Errorf("not undone: %q", notes)
	}
}

func TestFault13CreateDiskFull(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs a mount namespace")
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip(err)
	}
	f := newFixture(t)
	f.write("main/big", strings.Repeat("big", 100_000))
	f.commitMain("big")
	f.must(os.MkdirAll(f.path("full"), 0o755))
	refs := f.git(f.root, "for-each-ref")
	inner := childCmd(t, childJob{Repo: f.root, Do: "create-full", Create: CreateIn{Path: f.path("full/w"), Branch: "team/w"}})
	cmd := exec.Command(unshare, "--mount", inner.Path)
	cmd.Env = inner.Env
	out, err := cmd.CombinedOutput()
	switch status := cmd.ProcessState.ExitCode(); {
	case status == 77 || strings.Contains(string(out), "unshare failed"):
		t.Skipf("no mount namespace: %s", out)
	case status != team.ExitStatus(team.Errorf(team.CodeUnavailable, "")) || !strings.HasPrefix(string(out), team.ReasonDiskFull):
		t.Errorf("%v %s", err, out)
	}
	if f.git(f.root, "for-each-ref") != refs || f.exists(f.path("main/.git/worktrees")) {
		t.Error("not rolled back")
	}
}

func TestCreateNotesSubmodules(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git(f.dir, "init", "--quiet", "--initial-branch=main", f.path("lib"))
	f.write("lib/l", "l")
	f.commitAll(f.path("lib"), "lib")
	f.git(f.root, "submodule", "add", "--quiet", f.path("lib"), "lib")
	f.commitMain("submodule")
	w := f.create("w")
	if len(w.Notes) != 1 || !strings.Contains(w.Notes[0], "submodule update") {
		t.Errorf("%q", w.Notes)
	}
	if st, err := f.repo.Status(f.ctx(), w.Path); err != nil || !st.Clean() {
		t.Errorf("%v %+v", err, st)
	}
}

func TestCreateBare(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git(f.dir, "clone", "--quiet", "--bare", f.root, f.path("bare.git"))
	r, err := OpenRepo(f.ctx(), f.path("bare.git"))
	f.must(err)
	if !r.bare || r.Root() != f.path("bare.git") {
		t.Errorf("%+v", r)
	}
	w, err := r.Create(f.ctx(), CreateIn{Path: f.path("wt/b"), Branch: "team/b"})
	f.must(err)
	r2, _, err := OpenWorktree(f.ctx(), w.Path)
	f.must(err)
	if !r2.bare || r2.Root() != r.Root() {
		t.Errorf("%+v", r2)
	}
	if _, err := r2.Remove(f.ctx(), w.Path, RemoveIn{DeleteBranch: true}); err != nil {
		t.Error(err)
	}
}

func TestNamedFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id, base string
		want     bool
	}{{"w", "w", true}, {"w12", "w", true}, {"wx", "w", false}, {"v", "w", false}, {"a-b", "a b", true}} {
		if got := namedFor(c.id, c.base); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestCheckBranch(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "a/b", "teamctl/t/alice", "a.b", "@a", "ä"} {
		if err := checkBranch(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"-a", "HEAD", "@", "a b", "a..b", "a@{1}", "a~1", "a^", "a:b", "a?", "a*", "a[b", `a\b`,
		"/a", "a/", "a//b", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "a\n", "a\x7f"} {
		if err := checkBranch(name); team.ReasonOf(err) != team.ReasonBadBranch {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func BenchmarkCreate100(b *testing.B) {
	dir := b.TempDir()
	run := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), testIdentity...)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	run("init", "--quiet", "--initial-branch=main", "main")
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(dir, "main", fmt.Sprint(i)), []byte(strings.Repeat("x", 4096)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	run("-C", "main", "add", ".")
	run("-C", "main", "commit", "--quiet", "-m", "first")
	r, err := OpenRepo(context.Background(), filepath.Join(dir, "main"))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("create", func(b *testing.B) {
		for i := range b.N {
			if _, err := r.Create(context.Background(), CreateIn{Path: filepath.Join(dir, fmt.Sprintf("wt/c%d-%d", b.N, i)), Branch: fmt.Sprintf("c%d-%d", b.N, i)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("git-worktree-add", func(b *testing.B) {
		for i := range b.N {
			run("-C", "main", "worktree", "add", "--quiet", "-b", fmt.Sprintf("g%d-%d", b.N, i), filepath.Join(dir, fmt.Sprintf("wt/g%d-%d", b.N, i)))
		}
	})
}
