package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// What is read from the files of a repository is what git reports, or unknown.
func TestRefsFromFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.git(f.root, "rev-parse", "HEAD")
	want := func(state, head, branch, tip string, known bool) {
		t.Helper()
		if got := f.repo.headRef(); got != head {
			t.Errorf("%s: HEAD is %q, want %q", state, got, head)
		}
		if got, ok := f.repo.branchRef(branch); got != tip || ok != known {
			t.Errorf("%s: %s is %q %v, want %q %v", state, branch, got, ok, tip, known)
		}
		has, err := f.repo.HasBranch(f.ctx(), branch)
		f.must(err)
		_, err = f.tryGit(f.root, "show-ref", "--verify", "--quiet", "refs/heads/"+branch)
		if has != (err == nil) {
			t.Errorf("%s: has %s: %v", state, branch, has)
		}
	}
	want("loose", first, "main", first, true)
	want("none", first, "x", "", true)
	f.git(f.root, "branch", "team/a")
	want("a directory of names", first, "team", "", false)
	want("below a branch", first, "main/x", "", true)
	f.git(f.root, "tag", "-a", "x", "-m", "x")
	f.git(f.root, "pack-refs", "--all")
	want("packed", first, "team/a", first, true)
	want("a tag of that name", first, "x", "", true)
	want("the end of a name", first, "a", "", true)
	f.write("main/a.txt", "more")
	f.commitMain("second")
	second := f.head(f.root)
	want("newer than packed", second, "main", second, true)
	f.git(f.root, "symbolic-ref", "refs/heads/link", "refs/heads/main")
	want("a link", second, "link", "", false)
	f.git(f.root, "switch", "--quiet", "link")
	want("HEAD at a link", "", "link", "", false)
	f.git(f.root, "switch", "--quiet", "--detach", first)
	want("detached", first, "main", second, true)
	f.git(f.root, "switch", "--quiet", "main")
	f.must(os.Mkdir(f.path("main/.git/reftable"), 0o755))
	want("another format", "", "main", "", false)
	f.must(os.Remove(f.path("main/.git/reftable")))
	packed, err := os.OpenFile(f.path("main/.git/packed-refs"), os.O_APPEND|os.O_WRONLY, 0)
	f.must(err)
	f.must(func() error {
		line := second + " refs/tags/z" + strings.Repeat("z", 200) + "\n"
		_, err := packed.WriteString(strings.Repeat(line, packedMost/len(line)+1))
		return err
	}())
	f.must(packed.Close())
	want("many packed refs", second, "team/a", "", false)
}

// A create starts no more processes than `git worktree add` does: one for the
// registration and one for the checkout. Process starts dominate the cost of a
// small create.
func TestCreateStartsTwoGits(t *testing.T) {
	f := newFixture(t)
	base := f.git(f.root, "rev-parse", "HEAD")
	real, err := exec.LookPath("git")
	f.must(err)
	log := f.path("starts")
	f.write("bin/git", "#!/bin/sh\necho \"$*\" >> '"+log+"'\nexec '"+real+"' \"$@\"\n")
	f.must(os.Chmod(f.path("bin/git"), 0o755))
	t.Setenv("PATH", f.path("bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	starts := func(what string, want int, do func() error) {
		t.Helper()
		f.write("starts", "")
		f.must(do())
		said, err := os.ReadFile(log)
		f.must(err)
		if got := strings.Count(string(said), "\n"); got != want {
			t.Errorf("%s: %d starts of git, want %d:\n%s", what, got, want, said)
		}
	}
	var r *Repo
	starts("open", 0, func() (err error) { r, err = OpenRepo(f.ctx(), f.root); return err })
	for name, base := range map[string]string{"head": "", "base": base} {
		starts(name, 2, func() error {
			_, err := r.Create(f.ctx(), CreateIn{Path: f.path("wt/" + name), Branch: "team/" + name, Base: base})
			return err
		})
	}
}

// A HEAD that names a missing commit is reported as such, and nothing remains.
func TestCreateFromLostCommit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.git(f.root, "rev-parse", "HEAD")
	lost := f.path("main/.git/objects/" + first[:2] + "/" + first[2:])
	f.must(os.Rename(lost, f.path("lost")))
	_, err := f.repo.Create(f.ctx(), CreateIn{Path: f.path("wt/a"), Branch: "team/a"})
	wantErr(t, err, team.CodeInvalid, team.ReasonUnreadableRepo)
	f.must(os.Rename(f.path("lost"), lost))
	if f.exists(f.path("wt/a")) || f.branches() != "main" {
		t.Errorf("left over: %v %s", f.exists(f.path("wt/a")), f.branches())
	}
}
